#include "src/embed/service_jobs.h"

#include <algorithm>
#include <utility>

#include "src/base/limits/out_of_memory.h"

namespace latte {

Status ServiceJobs::Add(const std::shared_ptr<ServiceJob>& job, size_t prompts) {
  const std::lock_guard lock(mutex_);
  if (closed_) return tl::unexpected(*closed_);
  job->id = next_id_++;
  for (size_t i = 0; i < prompts; ++i) {
    job->keys.push_back(next_key_);
    places_.emplace(next_key_++, Place{job, i});
  }
  jobs_.emplace(job->id, job);
  return {};
}

bool ServiceJobs::Submitted(ServiceJob& job, RequestId request) {
  const std::lock_guard lock(mutex_);
  job.requests.push_back(request);
  return jobs_.contains(job.id) && !job.stop;
}

void ServiceJobs::Push(ServiceJob& job, ServiceResult result) {
  result.id = job.id;
  result.user_data = job.user_data;
  job.queue->Push(std::move(result));
}

void ServiceJobs::Forget(const ServiceJob& job) {
  for (const uint64_t key : job.keys) places_.erase(key);
  jobs_.erase(job.id);
}

std::vector<RequestId> ServiceJobs::Deliver(std::span<const TokenEvent> events) {
  std::vector<RequestId> unneeded;
  std::vector<std::shared_ptr<ResultQueue>> touched;
  const std::lock_guard lock(mutex_);
  for (const TokenEvent& event : events) {
    const auto found = places_.find(event.user_data);
    if (found == places_.end()) continue;  // of a job that has ended
    const Place place = found->second;
    const Status delivered = CatchExhaustion([&]() -> Status {
      DeliverOne(place, event, &unneeded);
      return {};
    });
    if (!delivered) {
      Push(*place.job, {.last = true, .error = delivered.error()});
      unneeded.insert(unneeded.end(), place.job->requests.begin(), place.job->requests.end());
      Forget(*place.job);
    }
    if (std::ranges::find(touched, place.job->queue) == touched.end())
      touched.push_back(place.job->queue);
  }
  for (const auto& queue : touched) queue->Signal();
  return unneeded;
}

void ServiceJobs::DeliverOne(const Place& place, const TokenEvent& event,
                             std::vector<RequestId>* unneeded) {
  if (place.job->running) return AddToAnswer(place, event, unneeded);
  AddPlain(*place.job, event);
}

void ServiceJobs::AddPlain(ServiceJob& job, const TokenEvent& event) {
  const bool ends = event.finish.has_value();
  const bool last = ends && job.open == 1;
  if (!job.whole) {
    Push(job, {.event = event, .last = last});
  } else if (WholeAnswer& answer = job.answers[static_cast<size_t>(event.choice)];
             answer.Add(event)) {
    Push(job, {.answer = std::make_unique<WholeAnswer>(std::move(answer)), .last = last});
  }
  if (ends) --job.open;
  if (last) Forget(job);
}

void ServiceJobs::AddToAnswer(const Place& place, const TokenEvent& event,
                              std::vector<RequestId>* unneeded) {
  ServiceJob& job = *place.job;
  ServiceResult result;
  job.running->Add(place.prompt, event, &result.bytes);
  const bool done = job.running->done();
  const bool stream = job.running->reply().stream;
  if (done) {
    result.last = true;
    if (job.running->error()) {
      unneeded->insert(unneeded->end(), job.requests.begin(), job.requests.end());
      result.error = *job.running->error();
    } else if (!stream) {
      result.bytes = job.running->Body();
    }
  }
  if (!result.bytes.empty() || done) Push(job, std::move(result));
  if (done) Forget(job);
}

std::vector<RequestId> ServiceJobs::Drop(const ServiceJob& job) {
  const std::lock_guard lock(mutex_);
  Forget(job);
  return job.requests;
}

void ServiceJobs::Finish(const ServiceJob& job, const Status& status) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(job.id);
  if (found == jobs_.end()) return;
  const std::shared_ptr<ServiceJob> kept = found->second;
  ServiceResult result{.last = true};
  if (!status) result.error = status.error();
  Push(*kept, std::move(result));
  Forget(*kept);
  kept->queue->Signal();
}

std::vector<RequestId> ServiceJobs::Cancel(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return {};
  const std::shared_ptr<ServiceJob> job = found->second;
  job->stop = true;
  // Plain requests end by their events, and sequences when their thread sees it.
  if (!job->running) return job->requests;
  Push(*job, {.last = true, .error = Error{Code::kCancelled, "cancelled by the program"}});
  Forget(*job);
  job->queue->Signal();
  return job->requests;
}

void ServiceJobs::Close(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!closed_) closed_ = error;
  for (const auto& [id, job] : std::exchange(jobs_, {})) {
    Push(*job, {.last = true, .error = error});
    job->queue->Signal();
  }
  places_.clear();
}

}  // namespace latte
