#include "controller/dashboard/job_samples.h"

#include <algorithm>

namespace paceline::dashboard {

std::optional<JobSamples::Now> JobSamples::add(const std::string& uid, const kube::Json& object) {
  auto jobs = jobs_.lock();
  Sampled& of = (*jobs)[uid];
  if (!of.samples.add(object, clock_.wall_now())) {
    if (of.samples.version() == 0) jobs->erase(uid);
    return std::nullopt;
  }
  of.changed = clock_.now();
  const Now now{of.samples.version(), of.samples.newest()};
  if (jobs->size() > kMost)
    jobs->erase(std::ranges::min_element(*jobs, {}, [](const auto& each) { return each.second.changed; }));
  return now;
}

StatusSamples JobSamples::of(const std::string& uid) const {
  auto jobs = jobs_.lock();
  const auto found = jobs->find(uid);
  return found == jobs->end() ? StatusSamples() : found->second.samples;
}

}  // namespace paceline::dashboard
