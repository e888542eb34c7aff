#include "controller/dashboard/job_table.h"

#include <algorithm>

#include "base/text.h"

namespace paceline::dashboard {

using kube::Json;

std::string key_of(std::string_view ns, std::string_view name) {
  return str_cat(ns, "/", name);
}

std::string key_of(const Json& object) {
  return key_of(kube::text_at(object, {"metadata", "namespace"}),
                kube::text_at(object, {"metadata", "name"}));
}

namespace {

bool sees(const Namespaces& namespaces, std::string_view key) {
  return namespaces == nullptr || namespaces->contains(std::string(key.substr(0, key.find('/'))));
}

}  // namespace

bool JobTable::put(const Json& object, std::string row) {
  const std::string& uid = kube::text_at(object, {"metadata", "uid"});
  const std::string key = key_of(object);
  Job& job = jobs_[key];
  if (job.object != nullptr && job.uid != uid) {
    note_removal(key, job.uid);
    job = {};
  }
  if (job.object != nullptr && job.row == row && *job.object == object) return false;
  job.uid = uid;
  job.changed = ++version_;
  if (job.row != row) job.row_changed = rows_changed_ = version_;
  job.row = std::move(row);
  job.object = std::make_shared<const Json>(object);
  return true;
}

bool JobTable::remove(const std::string& key) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return false;
  note_removal(key, found->second.uid);
  jobs_.erase(found);
  return true;
}

void JobTable::note_removal(const std::string& key, const std::string& uid) {
  rows_changed_ = ++version_;
  removals_.push_back({version_, uid, key.substr(0, key.find('/'))});
  if (removals_.size() <= kRemovals) return;
  forgotten_ = removals_.front().version;
  removals_.pop_front();
}

bool JobTable::set_left_out(std::vector<std::string> left_out) {
  if (left_out == left_out_) return false;
  left_out_ = std::move(left_out);
  left_out_changed_ = rows_changed_ = ++version_;
  return true;
}

const JobTable::Job* JobTable::find(const std::string& key) const {
  const auto found = jobs_.find(key);
  return found == jobs_.end() ? nullptr : &found->second;
}

std::string JobTable::list_json(const Namespaces& namespaces) const {
  std::string text = str_cat("{\"version\":\"", version_, "\",\"jobs\":[");
  bool first = true;
  for (const auto& [key, job] : jobs_) {
    if (!sees(namespaces, key)) continue;
    if (!std::exchange(first, false)) text += ',';
    text += job.row;
  }
  return text + str_cat("],\"leftOut\":", kube::dump(Json(left_out_)), "}");
}

bool JobTable::has_news(std::uint64_t since, const Namespaces& namespaces) const {
  if (is_whole(since) || left_out_changed_ > since) return true;
  const auto is_new = [&](const auto& each) {
    return each.second.row_changed > since && sees(namespaces, each.first);
  };
  const auto went = [&](const Removal& each) { return each.version > since && sees(namespaces, each.ns); };
  return std::ranges::any_of(jobs_, is_new) || std::ranges::any_of(removals_, went);
}

std::string JobTable::delta_json(std::uint64_t since, const Namespaces& namespaces) const {
  const bool full = is_whole(since);
  std::string text =
      str_cat("{\"version\":\"", version_, "\",\"full\":", full ? "true" : "false", ",\"rows\":[");
  bool first = true;
  for (const auto& [key, job] : jobs_) {
    if ((!full && job.row_changed <= since) || !sees(namespaces, key)) continue;
    if (!std::exchange(first, false)) text += ',';
    text += job.row;
  }
  std::set<std::string_view> gone;
  for (const Removal& each : removals_) {
    if (!full && each.version > since && sees(namespaces, each.ns)) gone.insert(each.uid);
  }
  // A run that is made again has its uid again.
  for (auto job = jobs_.begin(); !gone.empty() && job != jobs_.end(); ++job) gone.erase(job->second.uid);
  Json removed = Json::array();
  for (const std::string_view uid : gone) removed.push_back(uid);
  text += str_cat("],\"removed\":", kube::dump(removed));
  if (full || left_out_changed_ > since) text += str_cat(",\"leftOut\":", kube::dump(Json(left_out_)));
  return text + "}";
}

}  // namespace paceline::dashboard
