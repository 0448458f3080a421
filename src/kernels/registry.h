// Finds the kernel for a shape. The kernels of every op are listed by hand in cpu/tables; there is
// no static registration, so the list has an order, survives static linking and can be read.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "src/base/check.h"
#include "src/kernels/op.h"
#include "src/kernels/ops.h"
#include "src/kernels/shape_text.h"

namespace latte {

// All kernels of an op, backend by backend; of the CPU the reference first, then by rising Isa.
// Defined in backends.cc.
template <class Op>
std::span<const Kernel<Op>> Kernels();

// A kernel without its functions, for listings.
struct KernelInfo {
  std::string_view op;    // "gemm"
  std::string_view name;  // "avx512_vnni.gemm_s8_gemv"
  Isa isa;
  std::string_view order;
};
std::vector<KernelInfo> AllKernels();

// The current name of a kernel given by its current or a former name ("avx2.linear" → "avx2.gemm");
// any other name as it is. LATTE_KERNEL and --kernel accept both.
std::string CurrentKernelName(std::string_view name);

// How a name of LATTE_KERNEL fits a kernel: it is the kernel's own name, or names all kernels of an
// op with one instruction set ("avx512.gemm").
enum class NameMatch { kNone, kGroup, kKernel };
NameMatch MatchName(std::string_view wanted, const KernelInfo& kernel);

namespace internal {

enum class Rank { kUnfit, kChosen, kForcedGroup, kForcedGroupPreferred, kForced };

template <class Op>
NameMatch ForcedBy(const Kernel<Op>& kernel, const Machine& machine) {
  NameMatch best = NameMatch::kNone;
  for (const std::string& name : machine.forced_kernels)
    best = std::max(best, MatchName(name, {Op::kName, kernel.name, kernel.isa, kernel.order}));
  return best;
}

// How strongly a kernel that can run the shape is wanted for it. `slow_too`: is_slow does not
// count.
template <class Op>
Rank RankOf(const Kernel<Op>& kernel, const typename Op::Shape& shape, const Machine& machine,
            bool slow_too) {
  const auto holds = [&](const KernelRule<Op>& rule, bool otherwise) {
    return rule ? rule(shape, machine.uarch) : otherwise;
  };
  const NameMatch forced = ForcedBy(kernel, machine);
  if (forced == NameMatch::kKernel) return Rank::kForced;
  const bool preferred = holds(kernel.is_preferred, true);
  if (forced == NameMatch::kGroup)
    return preferred ? Rank::kForcedGroupPreferred : Rank::kForcedGroup;
  const bool slow = !slow_too && holds(kernel.is_slow, false);
  return preferred && !slow ? Rank::kChosen : Rank::kUnfit;
}

// The last kernel of the highest rank among those that pass `filter`; null if none fits.
template <class Op, class Filter>
const Kernel<Op>* Best(const typename Op::Shape& shape, const Machine& machine, bool slow_too,
                       const Filter& filter) {
  const Kernel<Op>* best = nullptr;
  Rank rank = Rank::kChosen;
  for (const Kernel<Op>& kernel : Kernels<Op>()) {
    if (!machine.Has(kernel.isa) || !filter(kernel) || !kernel.supports(shape)) continue;
    const Rank own = RankOf(kernel, shape, machine, slow_too);
    if (own < rank) continue;
    rank = own;
    best = &kernel;
  }
  return best;
}

}  // namespace internal

// Throws the DeviceError of a shape that no kernel of a machine runs.
[[noreturn]] void ThrowNoKernel(std::string_view op, const std::string& shape,
                                const Machine& machine);

// The kernel that runs `shape` on `machine`: a forced kernel if one supports the shape; else the
// last kernel of the table that the machine can run, that supports the shape, is preferred to the
// kernels before it with its instruction set, and not slow on this micro-architecture. The
// reference supports every shape, so a processor always has a kernel. Throws DeviceError for a GPU
// without one.
template <class Op>
const Kernel<Op>& Select(const typename Op::Shape& shape, const Machine& machine) {
  const Kernel<Op>* const best =
      internal::Best<Op>(shape, machine, false, [](const Kernel<Op>&) { return true; });
  if (best == nullptr) ThrowNoKernel(Op::kName, ShapeText(shape), machine);
  return *best;
}

// The same among the kernels with the instruction set and the order of sums of `selected`, for a
// part of a call that `selected` was chosen for; `selected` if none supports the part.
template <class Op>
const Kernel<Op>& SelectPeer(const Kernel<Op>& selected, const typename Op::Shape& shape,
                             const Machine& machine) {
  const Kernel<Op>* const best =
      internal::Best<Op>(shape, machine, true, [&](const Kernel<Op>& kernel) {
        return kernel.isa == selected.isa && kernel.order == selected.order;
      });
  return best != nullptr ? *best : selected;
}

// The kernels selected in one step, so that Select runs once for each op and shape of a step; all
// layers have the same shapes. 150 KiB; allocates nothing.
class Selections {
 public:
  // Forgets all: at the start of a step.
  void Clear() {
    std::apply([](auto&... memo) { ((memo.count = 0), ...); }, memos_);
    selected_ = 0;
  }

  template <class Op>
  const Kernel<Op>& Of(const typename Op::Shape& shape, const Machine& machine) {
    return Find<Op>(nullptr, shape, [&] { return &Select<Op>(shape, machine); });
  }
  template <class Op>
  const Kernel<Op>& PeerOf(const Kernel<Op>& selected, const typename Op::Shape& shape,
                           const Machine& machine) {
    return Find<Op>(&selected, shape, [&] { return &SelectPeer<Op>(selected, shape, machine); });
  }

  int64_t selected() const { return selected_; }  // since Clear

 private:
  // More shapes of one op in one step replace the oldest ones.
  static constexpr size_t kShapes = 64;

  template <class Op>
  struct Choice {
    const Kernel<Op>* peer_of;
    typename Op::Shape shape;
    const Kernel<Op>* kernel;
  };
  template <class Op>
  struct Memo {
    std::array<Choice<Op>, kShapes> choices;
    size_t count = 0;
  };
  template <class... Ops>
  using Memos = std::tuple<Memo<Ops>...>;

  template <class Op, class F>
  const Kernel<Op>& Find(const Kernel<Op>* peer_of, const typename Op::Shape& shape,
                         const F& select) {
    auto& [choices, count] = std::get<Memo<Op>>(memos_);
    for (size_t i = 0; i < std::min(count, kShapes); ++i)
      if (choices[i].peer_of == peer_of && choices[i].shape == shape) return *choices[i].kernel;
    const Kernel<Op>* const kernel = select();
    choices[count++ % kShapes] = {peer_of, shape, kernel};
    ++selected_;
    return *kernel;
  }

  AllOps<Memos> memos_;
  int64_t selected_ = 0;
};

// As Select, once for each shape of a step.
template <class Op>
const Kernel<Op>& SelectIn(const Exec& exec, const typename Op::Shape& shape) {
  return exec.selections == nullptr ? Select<Op>(shape, *exec.machine)
                                    : exec.selections->template Of<Op>(shape, *exec.machine);
}

// Selects a kernel and runs it. Adds its time and work to exec.times, but no work that operands
// decide where the host cannot read them.
template <class Op>
void Run(const typename Op::Params& params, const Exec& exec) {
  const Kernel<Op>& kernel = SelectIn<Op>(exec, Op::ShapeOf(params));
  if (exec.only_selects) return;
  if (exec.times == nullptr) return kernel.run(params, exec);
  const auto start = std::chrono::steady_clock::now();
  kernel.run(params, exec);
  OpUse& use = (*exec.times)[Op::kName];
  use.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if constexpr (requires { Op::WorkOf(params); }) {
    if (requires { Op::kWorkReadsOperands; } && !exec.machine->Has(Isa::kRef)) return;
    const OpWork work = Op::WorkOf(params);
    use.work.flops += work.flops;
    use.work.bytes += work.bytes;
  }
}

}  // namespace latte
