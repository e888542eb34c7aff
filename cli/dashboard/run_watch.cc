#include "cli/dashboard/run_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/status/status.h"
#include "base/text.h"
#include "cli/cluster/job_view.h"
#include "controller/dashboard/job_row.h"

namespace paceline::cli {

using dashboard::Board;

namespace {

constexpr Duration kTick = std::chrono::seconds(1);  // of any file system's clock, and more

}  // namespace

RunWatch::Version RunWatch::version_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {info.st_ino, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

// A folder has another time when something comes into it or leaves it; two changes within one tick of the
// file system's clock have the same.
bool RunWatch::may_have_others() {
  const Version now = version_of(folder_);
  const auto changed =
      WallTime(std::chrono::seconds(now.seconds) + std::chrono::nanoseconds(now.nanoseconds));
  const bool same = std::exchange(listed_, now) == now;
  return !same || clock_.wall_now() - changed < kTick;
}

void RunWatch::look_for_runs(Board::Changes& changes) {
  if (!may_have_others()) return;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder_, error), end;
  std::set<std::string> found;
  for (; !error && entries != end; entries.increment(error)) {
    std::error_code ignored;
    if (entries->is_directory(ignored)) found.insert(entries->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return;  // it may be there again at the next look
  for (auto run = known_.begin(); run != known_.end();) {
    if (found.contains(run->first)) {
      ++run;
      continue;
    }
    if (!run->second.key.empty()) changes.removed.push_back(run->second.key);
    left_out_changed_ |= !run->second.left_out.empty();
    run = known_.erase(run);
  }
  for (const std::string& name : found) known_.try_emplace(name);
}

bool RunWatch::is_due(const std::string& name, const Run& run, Version& status, Version& job) const {
  status = version_of(str_cat(folder_, "/", name, "/status.json"));
  job = run.ended ? run.job : version_of(str_cat(folder_, "/", name, "/job.yaml"));
  if (status != run.status || job != run.job || run.read_at == TimePoint()) return true;
  return !run.ended && clock_.now() - run.read_at >= kOwnerLook;
}

void RunWatch::read(const std::string& name, Run& run, Board::Changes& changes) {
  auto object = runs_.job("", name);
  run.read_at = clock_.now();
  std::string why;
  if (object.ok()) {
    const std::string key = dashboard::key_of(*object);
    if (!run.key.empty() && run.key != key) changes.removed.push_back(run.key);
    run.key = key;
    run.ended = dashboard::has_ended(*object);
    changes.objects.push_back(printable(*std::move(object)));
  } else if (run.status != Version() && !absl::IsNotFound(object.status()) &&
             !absl::IsInvalidArgument(object.status())) {
    why = str_cat("run \"", name, "\" can't be read: ", object.status().message());
  }
  if (!object.ok() && !run.key.empty()) {
    changes.removed.push_back(std::exchange(run.key, ""));
    run.ended = false;
  }
  if (std::exchange(run.left_out, why) != why) left_out_changed_ = true;
}

std::vector<std::string> RunWatch::left_out() const {
  std::vector<std::string> texts;
  for (const auto& [name, run] : known_) {
    if (!run.left_out.empty()) texts.push_back(run.left_out);
  }
  return texts;
}

Board::Changes RunWatch::pass(const std::vector<std::string>& first) {
  Duration reading{};
  Board::Changes changes;
  look_for_runs(changes);
  const auto look = [&](const std::string& name, Run& run) {
    Version status, job;
    if (!is_due(name, run, status, job)) return;
    // The versions of before: what comes in between is read again.
    run.status = status;
    run.job = job;
    const TimePoint begin = clock_.now();
    read(name, run, changes);
    reading += clock_.now() - begin;
  };
  for (const std::string& name : first) {
    if (const auto run = known_.find(name); run != known_.end()) look(name, run->second);
  }
  auto run = known_.lower_bound(next_);
  next_.clear();
  for (std::size_t i = 0; i < known_.size(); ++i, ++run) {
    if (run == known_.end()) run = known_.begin();
    if (reading >= kPassLimit) {
      next_ = run->first;
      break;
    }
    look(run->first, run->second);
  }
  all_read_ |=
      std::ranges::none_of(known_, [](const auto& each) { return each.second.read_at == TimePoint(); });
  if (std::exchange(left_out_changed_, false)) changes.left_out = left_out();
  return changes;
}

}  // namespace paceline::cli
