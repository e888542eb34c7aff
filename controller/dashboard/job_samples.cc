#include "controller/dashboard/job_samples.h"

#include <algorithm>
#include <utility>

#include "controller/dashboard/job_row.h"

namespace paceline::dashboard {

std::optional<JobSamples::Now> JobSamples::add(const std::string& uid, const kube::Json& object) {
  auto jobs = jobs_.lock();
  auto found = jobs->known.find(uid);
  if (has_ended(object)) {
    if (found == jobs->known.end() || found->second.ended) return std::nullopt;
    Sampled& of = found->second;
    of.ended = clock_.now();
    of.samples = StatusSamples(of.samples);  // a copy has no memory for further ones
    jobs->room = jobs->room - of.room + of.samples.cells();
    of.room = of.samples.cells();
    return std::nullopt;
  }
  const std::size_t room = StatusSamples::cells_for(object);
  if (found == jobs->known.end()) {
    StatusSamples samples(jobs->first);
    if (!samples.add(object, clock_.wall_now()) || !make_room(*jobs, room)) return std::nullopt;
    found = jobs->known.emplace(uid, Sampled{std::move(samples), room, std::nullopt}).first;
  } else {
    Sampled& of = found->second;
    of.ended.reset();
    if (room > of.room && make_room(*jobs, room - of.room)) of.room = room;
    if (!of.samples.add(object, clock_.wall_now(), of.room)) return std::nullopt;
  }
  return Now{found->second.samples.version(), found->second.samples.newest()};
}

// False: there are not so many cells, since all jobs that are left go on.
bool JobSamples::make_room(Jobs& jobs, std::size_t cells) {
  while (jobs.room + cells > kMostCells) {
    const auto sooner = [](const auto& a, const auto& b) {
      return a.second.ended && (!b.second.ended || *a.second.ended < *b.second.ended);
    };
    const auto oldest = std::ranges::min_element(jobs.known, sooner);
    if (oldest == jobs.known.end() || !oldest->second.ended) return false;
    erase(jobs, std::string(oldest->first));
  }
  jobs.room += cells;
  return true;
}

void JobSamples::erase(Jobs& jobs, const std::string& uid) {
  const auto found = jobs.known.find(uid);
  if (found == jobs.known.end()) return;
  jobs.first = std::max(jobs.first, found->second.samples.version());
  jobs.room -= found->second.room;
  jobs.known.erase(found);
}

void JobSamples::forget(const std::string& uid) {
  erase(*jobs_.lock(), uid);
}

StatusSamples JobSamples::of(const std::string& uid) const {
  auto jobs = jobs_.lock();
  const auto found = jobs->known.find(uid);
  return found == jobs->known.end() ? StatusSamples() : found->second.samples;
}

}  // namespace paceline::dashboard
