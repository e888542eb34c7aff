#include "controller/dashboard/job_history.h"

#include <cstdio>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "controller/dashboard/past_job.h"
#include "controller/dashboard/series_record.h"

namespace paceline::dashboard {

using history::HistoryStore;
using history::Record;
using kube::Json;

namespace {

std::string_view reason_of(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      return "damaged";
    case absl::StatusCode::kResourceExhausted:
      return "full";
    case absl::StatusCode::kUnavailable:
      return "held";
    default:
      return "failed";
  }
}

}  // namespace

JobHistory::JobHistory(HistoryOptions options, const JobSamples& samples, const Clock& clock, Logger log)
    : options_(std::move(options)), samples_(samples), clock_(clock), log_(std::move(log)) {}

JobHistory::~JobHistory() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  (void)jobs_.lock();  // wakes it
  thread_.join();
  bool may_write = false;
  {
    auto state = state_.lock();
    may_write = state->store != nullptr || !state->tried;
  }
  if (may_write) (void)pass();
}

void JobHistory::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void JobHistory::run(const std::stop_token& stop) {
  const auto stops = [&](const Jobs&) { return stop.stop_requested(); };
  while (!stop.stop_requested()) {
    const bool written = pass();
    (void)jobs_.lock_when(stops, kLeastInterval);
    (void)jobs_.lock_when([&](const Jobs& jobs) { return stops(jobs) || (written && jobs.gone > 0); },
                          kInterval - kLeastInterval);
  }
}

void JobHistory::note(const std::string& uid, std::shared_ptr<const Json> object) {
  if (object == nullptr) return;
  auto jobs = jobs_.lock();
  Job& job = jobs->known[uid];
  job.changed |= job.object != object;
  job.object = std::move(object);
}

void JobHistory::note_deleted(const std::string& uid) {
  StatusSamples last = samples_.of(uid);
  auto jobs = jobs_.lock();
  const auto found = jobs->known.find(uid);
  if (found == jobs->known.end() || found->second.deleted) return;
  if (jobs->gone >= kMostGone) {
    jobs->known.erase(found);
    return;
  }
  ++jobs->gone;
  found->second.changed = true;
  found->second.deleted = clock_.wall_now();
  found->second.last = std::move(last);
}

void JobHistory::note_listed() {
  jobs_.lock()->listed = true;
}

absl::StatusOr<JobHistory::Store> JobHistory::open_store() {
  if (const Store store = state_.lock()->store) {
    if (!store->has_moved()) return store;
    log_.warning(str_cat(options_.path,
                         " was removed or replaced while it was open: what was kept in it is lost "
                         "here, and the history goes on with what is there now"),
                 {{"reason", "History"}});
    if (options_.on_error) options_.on_error("failed");
    state_.lock()->store = nullptr;
    std::remove((options_.path + "-wal").c_str());  // the old file's, which would be written into the new one
  }
  auto tried = HistoryStore::open(options_.path, options_.limits);
  if (absl::IsUnavailable(tried.status())) {
    drop_deleted();
    return absl::UnavailableError(str_cat("another replica has the file ", options_.path));
  }
  PL_ASSIGN_OR_RETURN(HistoryStore::Opened opened, std::move(tried));
  if (!opened.remark.empty()) {
    log_.warning(opened.remark, {{"reason", "History"}});
    if (options_.on_error) options_.on_error("damaged");
  }
  Store store = std::move(opened.store);
  for (auto jobs = jobs_.lock(); auto& [uid, job] : jobs->known) {
    job.changed = true;
    job.kept = 0;
  }
  auto state = state_.lock();
  state->store = store;
  state->absent_marked = false;
  return store;
}

// The replica that has the file has seen them go, too. Where it could not write that any more, they are not
// there when this one opens the file (mark_absent()).
void JobHistory::drop_deleted() {
  auto jobs = jobs_.lock();
  std::erase_if(jobs->known, [](const auto& job) { return job.second.deleted.has_value(); });
  jobs->gone = 0;
}

bool JobHistory::pass() {
  absl::Status status;
  if (const auto store = open_store(); store.ok()) {
    status = write(**store);
  } else {
    status = store.status();
  }
  note_result(status);
  return status.ok();
}

absl::Status JobHistory::write(HistoryStore& store) {
  std::vector<std::string> uids;
  for (auto jobs = jobs_.lock(); const auto& [uid, job] : jobs->known) {
    if (job.changed) uids.push_back(uid);
  }
  absl::Status result;
  for (const std::string& uid : uids) {
    Job job;
    {
      auto jobs = jobs_.lock();
      const auto found = jobs->known.find(uid);
      if (found == jobs->known.end()) continue;
      found->second.changed = false;
      job = found->second;
    }
    const absl::Status written = write_job(store, uid, job);
    if (!written.ok()) change(uid, [](Job& known) { known.changed = true; });
    if (absl::IsDataLoss(written)) return written;
    result.Update(written);
  }
  PL_RETURN_IF_ERROR(mark_absent(store));
  if (is_clock_settled()) PL_RETURN_IF_ERROR(store.forget(clock_.wall_now()));
  PL_ASSIGN_OR_RETURN(std::set<std::string> namespaces, store.namespaces());
  state_.lock()->namespaces = std::move(namespaces);
  return result;
}

void JobHistory::change(const std::string& uid, const std::function<void(Job&)>& change) {
  auto jobs = jobs_.lock();
  if (const auto found = jobs->known.find(uid); found != jobs->known.end()) change(found->second);
}

absl::Status JobHistory::write_job(HistoryStore& store, const std::string& uid, const Job& job) {
  const StatusSamples samples = job.deleted ? job.last : samples_.of(uid);
  std::optional<std::string> series;
  if (job.kept < samples.version()) {
    PL_ASSIGN_OR_RETURN(JobSeries all, kept_series(store, uid));
    samples.add_to(all, job.kept);
    series = pack_series(all);
  }
  PL_RETURN_IF_ERROR(store.put(record_of(*job.object, job.deleted, clock_.wall_now()), series));
  if (!job.deleted) {
    change(uid, [&](Job& known) { known.kept = samples.version(); });
    return absl::OkStatus();
  }
  auto jobs = jobs_.lock();
  jobs->gone -= jobs->known.erase(uid);
  return absl::OkStatus();
}

// Jobs that were deleted while nobody wrote here.
absl::Status JobHistory::mark_absent(HistoryStore& store) {
  if (!jobs_.lock()->listed || state_.lock()->absent_marked) return absl::OkStatus();
  const std::set<std::string> own{options_.ns};
  PL_ASSIGN_OR_RETURN(const std::vector<Record> records,
                      store.list(HistoryStore::Which::kOthers, options_.ns.empty() ? nullptr : &own));
  for (const Record& record : records) {
    if (jobs_.lock()->known.contains(record.uid)) continue;
    PL_RETURN_IF_ERROR(store.mark_deleted(record.uid, clock_.wall_now()));
  }
  state_.lock()->absent_marked = true;
  return absl::OkStatus();
}

// A clock that is months ahead for a moment would make all jobs too old.
bool JobHistory::is_clock_settled() {
  const Duration offset = clock_.wall_now().time_since_epoch() - clock_.now().time_since_epoch();
  if (!clock_offset_ || std::chrono::abs(offset - *clock_offset_) > kSettles) {
    clock_offset_ = offset;
    clock_settles_ = clock_.now() + kSettles;
  }
  return clock_.now() >= clock_settles_;
}

void JobHistory::note_result(const absl::Status& status) {
  absl::Status before;
  bool first = false;
  {
    auto state = state_.lock();
    before = std::exchange(state->trouble, status);
    first = !std::exchange(state->tried, true);
  }
  if (status.ok()) {
    if (!before.ok())
      log_.info(str_cat("the history of jobs is kept in ", options_.path), {{"reason", "History"}});
    return;
  }
  if (options_.on_error) options_.on_error(reason_of(status));
  if (before.code() != status.code() || first)
    log_.warning(str_cat("the history of jobs is not written: ", status.message(),
                         "; jobs go on without it, and it is tried again"),
                 {{"reason", "History"}});
  if (!absl::IsDataLoss(status)) return;
  state_.lock()->store = nullptr;
  if (const absl::Status aside = HistoryStore::set_aside(options_.path); !aside.ok())
    log_.warning(std::string(aside.message()), {{"reason", "History"}});
}

absl::StatusOr<JobHistory::Store> JobHistory::store() const {
  auto state = state_.lock();
  if (state->store != nullptr) return state->store;
  return absl::UnavailableError(str_cat("there is no history here: ", state->trouble.message()));
}

absl::StatusOr<std::vector<Record>> JobHistory::deleted(const std::set<std::string>* namespaces,
                                                        std::size_t most) const {
  PL_ASSIGN_OR_RETURN(const Store open, store());
  return open->list(HistoryStore::Which::kDeleted, namespaces, most);
}

absl::StatusOr<Record> JobHistory::find_deleted(const std::string& ns, const std::string& name,
                                                const std::string& uid) const {
  PL_ASSIGN_OR_RETURN(const Store open, store());
  return open->find_deleted(ns, name, uid);
}

absl::StatusOr<JobSeries> JobHistory::kept_series(HistoryStore& store, const std::string& uid) {
  PL_ASSIGN_OR_RETURN(const std::string bytes, store.series(uid));
  if (bytes.empty()) return JobSeries();
  return unpack_series(bytes).value_or(JobSeries());
}

JobSeries JobHistory::series(const std::string& uid) const {
  std::uint64_t kept = 0;
  if (auto jobs = jobs_.lock(); jobs->known.contains(uid)) kept = jobs->known[uid].kept;
  const StatusSamples samples = samples_.of(uid);
  const auto open = store();
  auto series = open.ok() ? kept_series(**open, uid) : open.status();
  if (!series.ok()) kept = 0;
  JobSeries all = std::move(series).value_or(JobSeries());
  samples.add_to(all, kept);
  return all;
}

std::set<std::string> JobHistory::namespaces() const {
  return state_.lock()->namespaces;
}

Json JobHistory::about() const {
  auto state = state_.lock();
  Json about = {{"kept", state->store != nullptr}};
  if (!state->trouble.ok()) about["why"] = state->trouble.message();
  return about;
}

}  // namespace paceline::dashboard
