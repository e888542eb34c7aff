#include "controller/cluster/local/local_cluster.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "base/check.h"
#include "base/file.h"
#include "base/status.h"
#include "controller/cluster/local/event_log.h"
#include "controller/cluster/local/log_tail.h"
#include "controller/cluster/local/oom_kills.h"
#include "controller/cluster/local/pod_protocol.h"
#include "controller/cluster/local/pod_record.h"
#include "controller/cluster/local/supervisor.h"

namespace paceline::cluster {

namespace {

constexpr int kEpollBatch = 64;
constexpr std::size_t kMostCgroupBytes = 1 << 16;
constexpr std::uint64_t kWake = 0;  // epoll's tag of our own eventfd; pods' tags are above

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (const auto equals = text.find('='); equals != std::string::npos) {
      env.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return env;
}

absl::Status make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return errno_status(error.value(), path);
  return absl::OkStatus();
}

// 0 where there is no such file.
std::size_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<std::size_t>(size);
}

struct Entry {
  Pod pod;
  std::size_t log_begin = 0;  // what its log held before it, of an earlier run of the job
  Supervisor supervisor;      // without descriptors once it is gone
  bool starting = true;       // create_pod is still at it
  bool gone = false;          // nothing of it runs any more
};

void signal_supervisor(const Supervisor& supervisor, int signal) {
  ::syscall(SYS_pidfd_send_signal, supervisor.pidfd.get(), signal, nullptr, 0);
}

class LocalClusterImpl final : public LocalCluster {
 public:
  // `epoll` watches `wake`, by kWake.
  LocalClusterImpl(LocalClusterOptions options, const Clock& clock, EventLog events, UniqueFd epoll,
                   UniqueFd wake)
      : options_(std::move(options)),
        clock_(clock),
        events_(std::move(events)),
        host_(host_name()),
        epoll_(std::move(epoll)),
        wake_(std::move(wake)),
        oom_kills_(oom_counter(read_file("/proc/self/cgroup", kMostCgroupBytes).value_or(""))) {
    monitor_ = std::jthread([this] { monitor(); });
  }

  ~LocalClusterImpl() override {
    kill_all();
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake();
  }

  absl::StatusOr<Pod> create_pod(const PodSpec& spec) override;
  absl::Status delete_pod(const std::string& ns, const std::string& name, const std::string& uid,
                          Duration grace) override;
  absl::StatusOr<std::vector<Pod>> list_pods(const std::string& ns, const std::string& job) override;
  absl::StatusOr<std::string> ensure_job(const JobObjects& job) override {
    const std::lock_guard lock(mutex_);
    return tokens_.try_emplace(job.job_uid, job.token).first->second;
  }
  absl::Status record_event(const Event& event) override {
    if (options_.on_event) options_.on_event(event);
    return events_.write(event, clock_.wall_now());
  }
  void watch(OnChange on_change) override;
  absl::StatusOr<std::string> tail_log(const Pod& pod, int lines) override {
    return tail_file(pod.log_path, lines, kTailLimitBytes, log_begin(pod));
  }

 private:
  // 0 for a pod that has left the list.
  std::size_t log_begin(const Pod& pod) {
    const std::lock_guard lock(mutex_);
    const auto found = tags_.find(pod.spec.name);
    return found == tags_.end() || entries_.at(found->second).pod.uid != pod.uid
               ? 0
               : entries_.at(found->second).log_begin;
  }
  absl::StatusOr<Supervisor> start(const Pod& pod);
  absl::Status adopt(std::uint64_t tag, Supervisor supervisor);
  void monitor();
  // With mutex_ held: look, read_notices, bury, all_gone, changed; without it: notify_watcher.
  void look(std::uint64_t tag);
  bool read_notices(Entry& entry);
  void bury(std::uint64_t tag, Entry& entry);
  void notify_watcher(const std::set<std::string>& keys);
  void kill_all();
  bool all_gone() const;
  void changed(const Pod& pod) { changed_.insert(pod.spec.ns + "/" + pod.spec.job); }
  void wake() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  const LocalClusterOptions options_;
  const Clock& clock_;
  const EventLog events_;
  const std::string host_;
  const UniqueFd epoll_, wake_;

  // Guarded by mutex_; settled_ tells that a pod is gone or that the watcher has returned.
  std::mutex mutex_;
  std::condition_variable settled_;
  std::map<std::uint64_t, Entry> entries_;
  std::map<std::string, std::uint64_t> tags_;  // by pod name
  OomKills oom_kills_;
  std::map<std::string, std::string> tokens_;  // by the job's uid
  std::uint64_t last_tag_ = kWake;
  std::set<std::string> changed_;  // keys that the watcher has yet to hear of
  OnChange on_change_;
  bool calling_ = false;
  bool ending_ = false;

  std::jthread monitor_;  // last: it uses all of the above
};

absl::StatusOr<Pod> LocalClusterImpl::create_pod(const PodSpec& spec) {
  PL_RETURN_IF_ERROR(check_spec(spec));
  std::uint64_t tag;
  Pod pod;
  {
    const std::lock_guard lock(mutex_);
    if (tags_.contains(spec.name)) return absl::AlreadyExistsError(str_cat("pod ", spec.name, " exists"));
    if (entries_.size() >= kMaxPods) {
      return absl::ResourceExhaustedError(
          str_cat("pod ", spec.name, ": there are ", kMaxPods, " pods already"));
    }
    tag = ++last_tag_;
    pod.spec = spec;
    pod.uid = new_uid();
    pod.host = host_;
    pod.log_path = str_cat(options_.root, "/logs/", spec.name, ".log");
    tags_[spec.name] = tag;
    oom_kills_.forget();
    entries_[tag].pod = pod;
    entries_[tag].log_begin = size_of(pod.log_path);
  }
  absl::StatusOr<Supervisor> supervisor = start(pod);
  const absl::Status status = supervisor.ok() ? adopt(tag, *std::move(supervisor)) : supervisor.status();
  if (status.ok()) return pod;
  const std::lock_guard lock(mutex_);
  tags_.erase(spec.name);
  entries_.erase(tag);
  return with_context(status, str_cat("pod ", spec.name));
}

absl::StatusOr<Supervisor> LocalClusterImpl::start(const Pod& pod) {
  const std::string folder = str_cat(options_.root, "/pods/", pod.spec.name);
  PL_RETURN_IF_ERROR(make_folder(folder));
  SupervisorPlan plan{options_.pod_program, pod.spec.command, pod.spec.env, folder, pod.log_path};
  plan.env["PACELINE_POD_UID"] = pod.uid;
  plan.env.insert(options_.env.begin(), options_.env.end());
  plan.env.merge(own_environment());
  absl::StatusOr<Supervisor> supervisor = start_supervisor(plan);
  std::error_code ignored;
  if (!supervisor.ok()) std::filesystem::remove(folder, ignored);  // only where it is empty
  return supervisor;
}

absl::Status LocalClusterImpl::adopt(std::uint64_t tag, Supervisor supervisor) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(tag);
  entry.supervisor = std::move(supervisor);
  entry.starting = false;
  for (const int fd : {entry.supervisor.socket.get(), entry.supervisor.pidfd.get()}) {
    epoll_event event{EPOLLIN, {.u64 = tag}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      const int error = errno;
      entry.supervisor.socket.reset();  // kills the pod
      ::waitpid(entry.supervisor.pid, nullptr, 0);
      return errno_status(error, "watching a pod");
    }
  }
  if (entry.pod.deleting) {  // meanwhile
    const Order now{0};
    (void)!::send(entry.supervisor.socket.get(), &now, sizeof now, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  changed(entry.pod);
  wake();
  return absl::OkStatus();
}

absl::Status LocalClusterImpl::delete_pod(const std::string& ns, const std::string& name,
                                          const std::string& uid, Duration grace) {
  const std::lock_guard lock(mutex_);
  const auto found = tags_.find(name);
  if (found == tags_.end()) return absl::NotFoundError(str_cat("pod ", name, " does not exist"));
  Entry& entry = entries_.at(found->second);
  if (entry.pod.spec.ns != ns || (!uid.empty() && entry.pod.uid != uid)) {
    return absl::NotFoundError(str_cat("pod ", ns, "/", name, " with uid ", uid, " does not exist"));
  }
  entry.pod.deleting = true;
  changed(entry.pod);
  wake();
  if (entry.gone) {
    const std::uint64_t tag = found->second;
    tags_.erase(found);
    entries_.erase(tag);
  } else if (!entry.starting) {
    const Order order{grace.count()};
    (void)!::send(entry.supervisor.socket.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
    signal_supervisor(entry.supervisor, SIGCONT);  // one that is stopped would not read it
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Pod>> LocalClusterImpl::list_pods(const std::string& ns, const std::string& job) {
  const std::lock_guard lock(mutex_);
  std::vector<Pod> pods;
  for (const auto& [name, tag] : tags_) {
    const Pod& pod = entries_.at(tag).pod;
    if (pod.spec.ns == ns && pod.spec.job == job) pods.push_back(pod);
  }
  return pods;
}

void LocalClusterImpl::watch(OnChange on_change) {
  std::unique_lock lock(mutex_);
  on_change_ = std::move(on_change);
  settled_.wait(lock, [this] { return !calling_; });
  for (const auto& [tag, entry] : entries_) changed(entry.pod);
  wake();
}

// ---- the monitor's thread

void LocalClusterImpl::monitor() {
  epoll_event events[kEpollBatch];
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events, kEpollBatch, -1);
    if (count < 0 && errno != EINTR) PL_CHECK(false, "epoll_wait fails only by a bug of ours");
    std::set<std::string> keys;
    {
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < count; ++i) look(events[i].data.u64);
      keys.swap(changed_);
      if (ending_) return;
    }
    notify_watcher(keys);
  }
}

void LocalClusterImpl::look(std::uint64_t tag) {
  if (tag == kWake) {
    std::uint64_t count;
    (void)!::read(wake_.get(), &count, sizeof count);
    return;
  }
  const auto found = entries_.find(tag);
  if (found == entries_.end() || found->second.gone || found->second.starting) return;
  Entry& entry = found->second;
  // The socket's end comes a moment before the process can be reaped; the pidfd tells when.
  if (entry.supervisor.socket.valid() && !read_notices(entry)) entry.supervisor.socket.reset();
  siginfo_t info;
  info.si_pid = 0;
  const int result = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(entry.supervisor.pidfd.get()),
                              &info, WEXITED | WNOHANG);
  // ECHILD: this process ignores SIGCHLD, so the system reaped it.
  if ((result == 0 && info.si_pid != 0) ||
      (result != 0 && errno == ECHILD && !entry.supervisor.socket.valid())) {
    bury(tag, entry);
  }
}

// False when the supervisor's end of the socket is closed.
bool LocalClusterImpl::read_notices(Entry& entry) {
  for (;;) {
    Notice notice;
    const ssize_t got = ::recv(entry.supervisor.socket.get(), &notice, sizeof notice, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got != static_cast<ssize_t>(sizeof notice)) return false;
    take_notice(entry.pod, notice, clock_.wall_now());
    if (entry.pod.signal == SIGKILL && !entry.pod.deleting && oom_kills_.take()) set_oom_killed(entry.pod);
    changed(entry.pod);
  }
}

void LocalClusterImpl::bury(std::uint64_t tag, Entry& entry) {
  if (entry.supervisor.socket.valid()) read_notices(entry);
  if (!entry.pod.ended()) {
    // Somebody killed the supervisor: the command died with it, the rest of its group dies now.
    if (entry.pod.pid > 0) ::kill(static_cast<pid_t>(-entry.pod.pid), SIGKILL);
    set_supervisor_killed(entry.pod, clock_.wall_now());
  }
  entry.supervisor = {};
  entry.gone = true;
  settled_.notify_all();
  changed(entry.pod);
  if (entry.pod.deleting) {
    tags_.erase(entry.pod.spec.name);
    entries_.erase(tag);
  }
}

void LocalClusterImpl::notify_watcher(const std::set<std::string>& keys) {
  OnChange on_change;
  {
    const std::lock_guard lock(mutex_);
    on_change = on_change_;
    calling_ = on_change != nullptr;
  }
  if (!on_change) return;
  for (const std::string& key : keys) on_change(key);
  const std::lock_guard lock(mutex_);
  calling_ = false;
  settled_.notify_all();
}

bool LocalClusterImpl::all_gone() const {
  for (const auto& [tag, entry] : entries_) {
    if (!entry.gone) return false;
  }
  return true;
}

void LocalClusterImpl::kill_all() {
  std::unique_lock lock(mutex_);
  on_change_ = nullptr;
  for (auto& [tag, entry] : entries_) {
    if (entry.gone) continue;
    ::shutdown(entry.supervisor.socket.get(), SHUT_WR);  // as if we were dead
    signal_supervisor(entry.supervisor, SIGCONT);
  }
  constexpr Duration kLastWait = std::chrono::seconds(1);
  if (settled_.wait_for(lock, kShutDownLimit - kLastWait, [this] { return all_gone(); })) return;
  for (auto& [tag, entry] : entries_) {
    if (!entry.gone) signal_supervisor(entry.supervisor, SIGKILL);
  }
  settled_.wait_for(lock, kLastWait, [this] { return all_gone(); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::make(LocalClusterOptions options,
                                                                 const Clock& clock) {
  if (options.root.empty() || options.root[0] != '/') {
    return absl::InvalidArgumentError(
        str_cat("the run's folder '", options.root, "' must be an absolute path"));
  }
  if (::access(options.pod_program.c_str(), X_OK) != 0) {
    return with_context(errno_status(errno, options.pod_program),
                        "the pods' supervisor paceline-pod is missing or broken; reinstall Paceline");
  }
  PL_RETURN_IF_ERROR(make_folder(options.root + "/pods"));
  PL_RETURN_IF_ERROR(make_folder(options.root + "/logs"));
  PL_ASSIGN_OR_RETURN(EventLog events, EventLog::open(options.root + "/events.jsonl"));
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC)), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{EPOLLIN, {.u64 = kWake}};
  if (!epoll.valid() || !wake.valid() || ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0)
    return errno_status(errno, "descriptors of the local cluster");
  return std::make_unique<LocalClusterImpl>(std::move(options), clock, std::move(events), std::move(epoll),
                                            std::move(wake));
}

}  // namespace paceline::cluster
