#include "controller/dashboard/job_feed.h"

#include <algorithm>
#include <utility>

#include "controller/dashboard/job_row.h"
#include "controller/jobs/kube_jobs.h"

namespace paceline::dashboard {

using kube::Json;

namespace {

const std::string& uid_of(const Json& object) {
  return kube::text_at(object, {"metadata", "uid"});
}

}  // namespace

void JobFeed::put(const Json& object, std::uint64_t round, Keys& changed) {
  const std::string key = key_of(object);
  const std::string& uid = uid_of(object);
  if (uid.empty() || kube::text_at(object, {"metadata", "name"}).empty()) return;
  Known& known = known_[key];
  if (known.uid != uid) sampled_.lock()->erase(known.uid);
  known = {uid, round};
  board_.apply({.objects = {jobs::printable(object)}});
  if (!has_ended(object)) sample(uid, object);
  changed.push_back(key);
}

void JobFeed::sample(const std::string& uid, const Json& object) {
  Board::Series now;
  {
    auto sampled = sampled_.lock();
    Sampled& of = (*sampled)[uid];
    if (!of.samples.add(object, clock_.wall_now())) {
      if (of.samples.version() == 0) sampled->erase(uid);
      return;
    }
    of.changed = clock_.now();
    now = {of.samples.version(), of.samples.newest()};
    if (sampled->size() > kMostSampled) {
      sampled->erase(
          std::ranges::min_element(*sampled, {}, [](const auto& each) { return each.second.changed; }));
    }
  }
  board_.note_series(key_of(object), now);
}

void JobFeed::forget(const std::string& key, Keys& changed) {
  const auto found = known_.find(key);
  if (found == known_.end()) return;
  sampled_.lock()->erase(found->second.uid);
  known_.erase(found);
  board_.apply({.removed = {key}});
  changed.push_back(key);
}

void JobFeed::remove(const Json& object, Keys& changed) {
  const std::string key = key_of(object);
  const auto found = known_.find(key);
  if (found != known_.end() && found->second.uid == uid_of(object)) forget(key, changed);
}

void JobFeed::sweep(std::uint64_t round, std::string_view, Keys& changed) {
  std::vector<std::string> gone;
  for (const auto& [key, known] : known_) {
    if (known.round < round) gone.push_back(key);
  }
  for (const std::string& key : gone) forget(key, changed);
}

JobSeries JobFeed::series(const Json& object) const {
  StatusSamples samples;  // a copy: the feed does not wait for a replay
  {
    auto sampled = sampled_.lock();
    const auto found = sampled->find(uid_of(object));
    if (found != sampled->end()) samples = found->second.samples;
  }
  return samples.series();
}

}  // namespace paceline::dashboard
