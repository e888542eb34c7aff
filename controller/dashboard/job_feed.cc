#include "controller/dashboard/job_feed.h"

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
  if (!known.uid.empty() && known.uid != uid) forget_job(known.uid);
  known = {uid, round};
  board_.apply({.objects = {jobs::printable(object)}});
  const auto sampled = samples_.add(uid, object);
  if (history_ != nullptr) history_->note(uid, board_.object(key));
  if (sampled) board_.note_series(key, {sampled->version, sampled->newest});
  changed.push_back(key);
}

// The history looks at the samples first.
void JobFeed::forget_job(const std::string& uid) {
  if (history_ != nullptr) history_->note_deleted(uid);
  samples_.forget(uid);
}

void JobFeed::forget(const std::string& key, Keys& changed) {
  const auto found = known_.find(key);
  if (found == known_.end()) return;
  forget_job(found->second.uid);
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
  if (history_ != nullptr) history_->note_listed();
}

}  // namespace paceline::dashboard
