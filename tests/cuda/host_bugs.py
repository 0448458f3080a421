#!/usr/bin/env python3
"""Plants one bug at a time in the host code for GPUs; a test over the emulated driver must turn red.

usage: tests/cuda/host_bugs.py BUILD-FOLDER [NAME-PART]

Run by hand after a change of the emulated driver or of the device layer. BUILD-FOLDER has cuda_device_test, cuda_memory_test,
cuda_model_test and cuda_engine_test: build/release. A file with a bug is compiled anew and linked before the libraries of the build.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICE, MODEL = "cuda_device_test", "cuda_model_test"
ENGINE, MEMORY = "cuda_engine_test", "cuda_memory_test"

# name, test, filter, file with the bug, text, its replacement, other files that include it
BUGS = [
    ("a pinned block is reused before its copies ran", DEVICE, "*CopiesMore*", "src/tensor/cuda/staging.cc",
     "if (block->is_used) block->copied.Await();", ""),
    ("the event of a block is left out", DEVICE, "*CopiesMore*", "src/tensor/cuda/staging.cc", "block.copied.Record(stream);", ""),
    ("the block holds one copy only", DEVICE, "*SourceOfACopy*", "src/tensor/cuda/staging.cc",
     "std::byte* const staged = block.memory.data() + used_;", "std::byte* const staged = block.memory.data();"),
    ("the host does not wait for a copy", DEVICE, "*", "src/tensor/cuda/cuda_device.cc",
     'driver_->Check(driver_->cuStreamSynchronize(StreamOf(stream)), "data was copied to the host");', ""),
    ("memory is not set to zero", DEVICE, "*ReadsAsZero*", "src/tensor/cuda/cuda_device.cc",
     "driver_->cuMemsetD8Async(at, 0,", "driver_->cuMemsetD8Async(at, 1,"),
    ("a buffer is freed while it is in use", DEVICE, "*FreedAfter*", "src/tensor/cuda/cuda_device.cc",
     "staging_->CopyFromHost(PtrOf(to), from, bytes, StreamOf(stream));",
     "static const auto* const other = new Stream(*driver_); staging_->CopyFromHost(PtrOf(to), from, bytes, other->get()); "
     "driver_->cuStreamSynchronize(other->get());"),
    ("the default stream", DEVICE, "*", "src/tensor/cuda/cuda_device.h",
     "return stream == nullptr ? stream_->get() : stream;", "return stream;",
     "src/tensor/cuda/cuda_device.cc", "src/kernels/cuda/launch/kernel_set.cc"),
    ("a thread launches for no GPU", DEVICE, "*AnyThread*", "src/kernels/cuda/launch/kernel_set.cc",
     "  device_.MakeCurrent();\n  const Driver& driver = device_.driver();\n  const abi::Code code = driver.cuLaunchKernel(",
     "  const Driver& driver = device_.driver();\n  const abi::Code code = driver.cuLaunchKernel("),
    ("pieces of a slab overlap", DEVICE, "*PiecesAreApart*", "src/tensor/cuda/pool.cc", "next_ + static_cast<abi::Ptr>(bytes));", "next_ + static_cast<abi::Ptr>(bytes) / 2);"),
    ("the last part of a copy is lost", MEMORY, "*AreApart*", "src/tensor/cuda/staging.cc", "while (bytes > 0) {", "while (bytes > 1000) {"),
    ("weights pass through pageable memory", MEMORY, "*TheDeviceHas*/v2_lite", "src/tensor/cuda/cuda_device.cc",
     "staging_->CopyFromHost(PtrOf(to), from, bytes, StreamOf(stream));",
     "driver_->cuMemcpyHtoDAsync_v2(PtrOf(to), from, static_cast<size_t>(bytes), StreamOf(stream));"),
    ("pinned blocks are never used again", MEMORY, "*AreApart*", "src/tensor/cuda/staging.cc",
     "if (block == nullptr) block = std::make_unique<Block>(driver_);", "if (block != nullptr) block.release();\n  block = std::make_unique<Block>(driver_);"),
    ("tensors of an arena begin at 64 bytes", MEMORY, "*AreApart*", "src/models/device_weights.h",
     "kAlignment = 256;", "kAlignment = 64;", "src/models/device_weights.cc"),
    ("two tensors of an arena at one place", MEMORY, "*AreApart*", "src/models/device_weights.cc",
     "return memory_.data() + std::exchange(used_, used_ + bytes);", "used_ += bytes;\n    return memory_.data();"),
    ("a part of a tensor is taken for all of it", MEMORY, "*PlacedOnce*", "src/models/device_weights.cc",
     "mapped.dtype, mapped.elements(), mapped.stride[0]", "mapped.dtype, 0, mapped.stride[0]"),
    ("repacked weights are found by an address that is used again", MEMORY, "*TheDeviceHas*", "src/models/weight_loader.cc",
     "converted ? weights_->PlaceCopy(*view) : weights_->Place(*view)", "weights_->Place(*view)"),
    ("one allocation per tensor", MEMORY, "*TheDeviceHas*/v2_lite", "src/models/device_weights.cc",
     "copies_.emplace_back(CopyToDevice(host, OpenedArena()))",
     "(OpenedArena().Allocate(host.elements() * SizeOf(host.dtype), MemoryUse::kTensor), copies_.emplace_back(CopyToDevice(host, *device_)))"),
    ("free memory of the host for the GPU's", MEMORY, "*TheCacheTakes*", "src/engine/core/compute_device.cc",
     "out.available_bytes = gpu_->FreeBytes();", "out.available_bytes = AvailableMemory();"),
    ("the cache takes what steps need", MEMORY, "*TheCacheTakes*", "src/engine/core/compute_device.cc",
     "out.step_bytes = DeviceStepBytes(config, options);", ""),
    ("one path is measured", MEMORY, "*EveryPath*", "src/engine/step/runner.cc",
     "for (const MlaPath path : paths) {\n      FillSmallest", "for (const MlaPath path : paths.first(1)) {\n      FillSmallest"),
    ("a workspace grows while steps run", MEMORY, "*AWorkspace*", "src/tensor/workspace.cc", "is_fixed_ = !device_->is_host();", ""),
    ("no slab, so no piece", MEMORY, "*SmallPieces*", "src/tensor/cuda/pool.cc", " && !AddSlab(bytes)", ""),
    ("memory of a failed load is kept", MEMORY, "*EveryLack*", "src/models/device_weights.cc",
     "DeviceWeights::~DeviceWeights() = default;", "DeviceWeights::~DeviceWeights() { for (auto& arena : arenas_) arena.release(); }"),
    ("params by address", DEVICE, "*ParamsAreRead*", "src/kernels/cuda/launch/kernel_set.cc",
     "void* arguments[] = {const_cast<void*>(params)};",
     "static AddParams kept; kept = *static_cast<const AddParams*>(params); kept.count = 4; void* arguments[] = {&kept};"),
    ("the table of sequences is not renewed", MODEL, "*F32*/v2_lite", "src/engine/step/runner.cc",
     "if (!placed_.view().empty() && !exec_.only_selects)\n",
     "static bool placed_once = false;\n  if (!placed_.view().empty() && !exec_.only_selects && !std::exchange(placed_once, true))\n"),
    ("a page is copied after the step that writes it", MODEL, "ForksOnGpu*", "src/kernels/cuda/launch/cache.cc",
     "{LanesGrid(s.page_bytes).x, static_cast<int64_t>(count)}, out, exec.stream);",
     "{LanesGrid(s.page_bytes).x, static_cast<int64_t>(count)}, out, [&] { static const auto* const late = "
     "new Stream(KernelsOf(exec).device().driver()); return late->get(); }());"),
    ("lengths of the first sequence for all", MODEL, "*F32*/v2_lite", "src/kernels/cuda/launch/attention.cc",
     "return {first.placed, first.pages.data(), static_cast<int32_t>(sequences.size())};",
     "static const auto kept = first.pages.data(); return {first.placed, kept + 1, static_cast<int32_t>(sequences.size())};"),
    ("counts of experts are read back", MODEL, "*OnlyStep*/v2_lite", "src/kernels/cuda/launch/gemm.cc",
     "out.first = p.first.data();",
     "out.first = p.first.data(); std::vector<int32_t> counts(p.first.size()); KernelsOf(exec).device().CopyToHost(counts.data(), "
     "reinterpret_cast<const std::byte*>(p.first.data()), static_cast<int64_t>(p.first.size_bytes()), exec.stream);"),
    ("a wait between layers", MODEL, "*OnlyStep*/v2_lite", "src/kernels/cuda/launch/norm.cc",
     "void LaunchRmsNorm(const RmsNormOp::Params& p, const Exec& exec) {",
     "void LaunchRmsNorm(const RmsNormOp::Params& p, const Exec& exec) {\n  KernelsOf(exec).device().Wait();"),
    ("hidden states of drafts pass through the host", ENGINE, "TransfersOfAStep*", "src/engine/step/runner.cc",
     "if (step.kind == StepKind::kDraftRows) return",
     "if (std::vector<float> host(static_cast<size_t>(h.elements())); !host.empty()) workspace_.device().CopyToHost(host.data(), h.data, "
     "h.elements() * 4, exec_.stream);\n  if (step.kind == StepKind::kDraftRows) return"),
    ("the host looks for NaN in hidden states", ENGINE, "TransfersOfAStep*", "src/engine/step/runner.cc",
     "latte::Run<FiniteRowsOp>(",
     "std::vector<float> host(static_cast<size_t>(h.elements())); device.CopyToHost(host.data(), h.data, h.elements() * 4, exec_.stream);\n"
     "  latte::Run<FiniteRowsOp>("),
    ("a wait before the logits", ENGINE, "TransfersOfAStep*", "src/engine/step/runner.cc",
     "if (of_draft) {\n",
     "int32_t flag; device.CopyToHost(&flag, finite_.Ptr<std::byte>(), 4, exec_.stream);\n  if (of_draft) {\n"),
    ("logits in new memory", ENGINE, "TransfersOfAStep*", "src/engine/step/runner.cc",
     "const std::span<const int32_t> rows = step.LogitRows(block);",
     "static auto& kept = *new std::vector<Tensor>; kept.push_back(Tensor(DType::kU8, {2 << 20}, device));\n"
     "  const std::span<const int32_t> rows = step.LogitRows(block);"),
    ("rows of drafts are kept in the wrong order", ENGINE, "*DraftsOnGpu*", "src/kernels/cuda/launch/rows.cc",
     "out.slots = p.slots.data();", "out.slots = p.slots.data() + p.slots.size() - 1;"),
    ("a page is loaded before it was read", ENGINE, "*PagesOnGpu.OnDisk*", "src/engine/step/page_bytes.cc",
     "cache.device().CopyFromHost(packed.data, bytes.data(), std::ssize(bytes), exec.stream);\n  CopyPacked(cache, -1, page, "
     "{packed.data, bytes.size()}, exec);",
     "CopyPacked(cache, -1, page, {packed.data, bytes.size()}, exec);\n  cache.device().CopyFromHost(packed.data, bytes.data(), "
     "std::ssize(bytes), exec.stream);"),
]


def link_command(build, test):
    lines = subprocess.run(["ninja", "-C", str(build), "-t", "commands", test], text=True, capture_output=True, check=True).stdout
    return next(line for line in reversed(lines.splitlines()) if f" -o tests/cuda/{test} " in line)


def flags_of(build):
    text = (build / "compile_commands.json").read_text() if (build / "compile_commands.json").exists() else ""
    return re.findall(r"-DFMT_SHARED", text)[:1]


def build_with(build, folder, bug):
    name, test, _, file, old, new, *users = bug
    text = (ROOT / file).read_text()
    if text.count(old) != 1:
        sys.exit(f"{name}: expected the text to replace once in {file}, found it {text.count(old)} times")
    copy = folder / file
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text.replace(old, new))
    objects = []
    for source in users or [file]:
        path = folder / source
        if source != file:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((ROOT / source).read_text())
        objects.append(str(folder / (path.stem + ".o")))
        subprocess.run(["g++", "-std=c++20", "-O1", "-w", "-include", "vector", *flags_of(build), f"-I{folder}", f"-I{ROOT}",
                        f"-I{ROOT}/include", "-c", str(path), "-o", objects[-1]], check=True)
    program = folder / test
    command = link_command(build, test)
    command = re.sub(r"^.*?&& ", "", command).replace(f"-o tests/cuda/{test} ",
                                                      f"-Wl,--allow-multiple-definition {' '.join(objects)} -o {program} ")
    command = re.sub(r"(\S*c\+\+\S*) (.*?)(tests/cuda/CMakeFiles)", rf"\1 \2{' '.join(objects)} \3", command, count=1)
    subprocess.run(command.split(" && ")[0], shell=True, check=True, cwd=build)
    return program


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    env = {**os.environ, "LATTE_CUDA_DRIVER": str(build / "tests/cuda/driver/libcuda_emulated.so")}
    bugs = [bug for bug in BUGS if len(sys.argv) < 3 or sys.argv[2] in bug[0]]
    missed = 0
    for bug in bugs:
        with tempfile.TemporaryDirectory() as name:
            program = build_with(build, pathlib.Path(name), bug)
            try:
                done = subprocess.run([program, f"--gtest_filter={bug[2]}"], text=True, capture_output=True, env=env, timeout=300)
                red, ran = done.returncode != 0, "[ RUN" in done.stdout
            except subprocess.TimeoutExpired:
                red, ran = True, True
        caught = red and ran
        print(f"{'caught' if caught else 'MISSED'}  {bug[0]}", flush=True)
        missed += not caught
    print(f"{len(bugs) - missed} of {len(bugs)} bugs are caught")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
