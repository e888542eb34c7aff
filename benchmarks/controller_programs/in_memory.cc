// The controller against an API server in memory: what it costs by itself, without a network.
//
//   controller_memory [--tiny] [--jobs N] [--pods N] [--rounds N] [--json FILE]
//
// First: passes (observe, plan, execute) over 1,000 running jobs of 8 pods each, in one thread, for 5 s of
// that thread's processor time; so many rounds (3), each from nothing. Then, once: N jobs (10,000) of N pods
// each (100) from nothing to all Running, by the whole controller as it runs in a pod; the process' time and
// memory, of which the API server's part is 16 bytes a pod. Targets: 20,000 passes/s; 4 GB.

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/processors.h"
#include "base/text.h"
#include "benchmarks/controller_programs/memory_api.h"
#include "controller/bin/controller.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/kube_cluster.h"
#include "controller/cluster/kube/kube_job_store.h"
#include "controller/queue/work_queue.h"
#include "controller/reconcile/coordinators.h"
#include "controller/reconcile/reconciler.h"

namespace paceline::benchmarks {
namespace {

constexpr Duration kLimit = std::chrono::minutes(30);
constexpr double kPassesTarget = 20'000, kMemoryTarget = 4.0;

struct Size {
  int pass_jobs = 1000, pass_pods = 8, jobs = 10'000, pods = 100, rounds = 3;
  double seconds = 5;  // of a round
};

const char* verdict(bool met) {
  return met ? "met" : "MISSED";
}

// As benchmarks/machine_name.py has it.
std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown processor", flags;
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) model = line.substr(colon + 2);
    if (line.starts_with("flags")) flags = line.substr(colon + 1) + " ";
  }
  const bool wide = flags.find(" avx512f ") != std::string::npos;
  const char* vectors = wide ? "AVX-512" : flags.find(" avx2 ") != std::string::npos ? "AVX2" : "no AVX2";
  return str_cat(::sysconf(_SC_NPROCESSORS_ONLN), " cores, ", model, ", ", vectors);
}

double cpu_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double resident_gigabytes(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0) return std::atof(line.c_str() + std::strlen(field) + 1) / 1048576.0;
  }
  return 0;
}

Logger silent() {
  return Logger::to_stderr("benchmark", LogLevel::kError);
}

// Passes per second of processor time, or a negative number where something went wrong.
double passes_per_second(const Size& size) {
  const SystemClock clock;
  MemoryApi server(size.pass_jobs, size.pass_pods);
  std::stop_source stop;
  kube::ApiClient api(server, clock, 1, stop.get_token());
  queue::WorkQueue queue(clock, {});
  kube::KubeCluster cluster(api, clock, silent(), {});
  kube::KubeJobStore jobs(api, clock, silent(), [](const std::string&) {});
  if (!cluster.wait_synced(kLimit).ok() || !jobs.wait_synced(kLimit).ok()) return -1;
  reconcile::CoordinatorsOptions settings;
  settings.server.listen = "127.0.0.1:0";
  auto reports = reconcile::Coordinators::start(std::move(settings), cluster, clock, silent(),
                                                [](const std::string&) {});
  if (!reports.ok()) return -1;
  reconcile::Reconciler reconciler(cluster, jobs, **reports, clock, queue, {}, silent());
  const auto all = [&] {
    std::size_t actions = 0;
    for (int i = 0; i < size.pass_jobs; ++i) {
      const auto plan = reconciler.reconcile_once(str_cat("bench/job-", i));
      if (!plan.ok()) {
        std::fprintf(stderr, "controller_memory: %s\n", std::string(plan.status().message()).c_str());
        std::exit(1);
      }
      actions += plan->actions.size();
    }
    return actions;
  };
  // Until all of them run, and nothing is left to do.
  const Deadline deadline = Deadline::after(clock.now(), kLimit);
  while (all() > 0 || server.counts().jobs_running < static_cast<std::uint64_t>(size.pass_jobs)) {
    if (deadline.expired(clock.now())) return -1;
  }
  const double begun = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  double took = 0;
  std::size_t passes = 0;
  while (took < size.seconds) {
    if (all() > 0) return -1;
    passes += static_cast<std::size_t>(size.pass_jobs);
    took = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - begun;
  }
  stop.request_stop();
  return static_cast<double>(passes) / took;
}

// What a start takes, by name; nothing where something went wrong.
std::optional<kube::Json> whole_controller(const Size& size) {
  const SystemClock clock;
  MemoryApi server(size.jobs, size.pods);
  controller::ControllerOptions options;
  options.config.leader_election.enabled = false;
  options.config.health_address = "127.0.0.1:0";
  options.config.coordinator_listen = "127.0.0.1:0";
  const TimePoint begun = clock.now();
  const double cpu_before = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
  auto controller = controller::Controller::start(options, server, clock, silent());
  if (!controller.ok()) {
    std::fprintf(stderr, "controller_memory: %s\n", std::string(controller.status().message()).c_str());
    return std::nullopt;
  }
  const Deadline deadline = Deadline::after(begun, kLimit);
  const auto jobs = static_cast<std::uint64_t>(size.jobs);
  const auto all = jobs * static_cast<std::uint64_t>(size.pods);
  while (server.counts().jobs_running < jobs || server.counts().running < all) {
    if (deadline.expired(clock.now())) {
      std::fprintf(stderr, "controller_memory: only %lu of %lu jobs and %lu of %lu pods run\n",
                   server.counts().jobs_running, jobs, server.counts().running, all);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const double seconds = std::chrono::duration<double>(clock.now() - begun).count();
  const MemoryApi::Counts counts = server.counts();
  const double cpu = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
  const double resident = resident_gigabytes("VmRSS"), peak = resident_gigabytes("VmHWM");
  const auto pods = static_cast<double>(counts.pods);
  const double requests = static_cast<double>(counts.requests) / pods;
  std::printf(
      "%d jobs x %d pods from nothing to all Running, the whole controller in one process with its API "
      "server:\n",
      size.jobs, size.pods);
  std::printf("  %.1f s, %.0f pods/s, %.1f s of processor time, %.2f requests per pod\n", seconds,
              pods / seconds, cpu, requests);
  std::printf("  memory: %.2f GB, at most %.2f GB   target %.0f GB   %s\n", resident, peak, kMemoryTarget,
              verdict(peak <= kMemoryTarget));
  if (!(*controller)->shut_down().ok()) return std::nullopt;
  return kube::Json{{"jobs", size.jobs},
                    {"pods", size.pods},
                    {"seconds", seconds},
                    {"cpu_seconds", cpu},
                    {"requests_per_pod", requests},
                    {"resident_gb", resident},
                    {"peak_gb", peak},
                    {"target_gb", kMemoryTarget}};
}

// Of all rounds; nothing where something went wrong.
std::optional<kube::Json> passes(const Size& size) {
  std::vector<double> rounds;
  for (int i = 0; i < size.rounds; ++i) {
    rounds.push_back(passes_per_second(size));
    if (rounds.back() < 0) return std::nullopt;
  }
  std::ranges::sort(rounds);
  const std::size_t half = rounds.size() / 2;
  const double median = rounds.size() % 2 == 1 ? rounds[half] : (rounds[half - 1] + rounds[half]) / 2;
  std::printf(
      "passes over %d running jobs of %d pods, one thread, min / median / max of %d rounds: "
      "%.0f / %.0f / %.0f per second   target %.0f   %s\n",
      size.pass_jobs, size.pass_pods, size.rounds, rounds.front(), median, rounds.back(), kPassesTarget,
      verdict(median >= kPassesTarget));
  std::fflush(stdout);
  const kube::Json spread = {{"min", rounds.front()}, {"median", median}, {"max", rounds.back()}};
  return kube::Json{{"jobs", size.pass_jobs}, {"pods", size.pass_pods},
                    {"rounds", size.rounds},  {"cpu_seconds_per_round", size.seconds},
                    {"per_second", spread},   {"target", kPassesTarget}};
}

int run(int argc, char** argv) {
  Size size;
  std::string file;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    int* const number = argument == "--jobs"     ? &size.jobs
                        : argument == "--pods"   ? &size.pods
                        : argument == "--rounds" ? &size.rounds
                                                 : nullptr;
    if (argument == "--tiny") {
      size = {.pass_jobs = 20, .pass_pods = 2, .jobs = 20, .pods = 3, .rounds = 2, .seconds = 0.05};
    } else if (number != nullptr && std::atoi(value) > 0) {
      *number = std::atoi(argv[++i]);
    } else if (argument == "--json" && *value != '\0') {
      file = argv[++i];
    } else {
      std::fprintf(stderr,
                   "usage: controller_memory [--tiny] [--jobs N] [--pods N] [--rounds N] [--json FILE]\n");
      return 2;
    }
  }
  const std::string name = machine();
  const int processors = usable_processors();
  std::printf("machine: %s; may use %d of them\n", name.c_str(), processors);
  const auto reconciles = passes(size);
  if (!reconciles) return 1;
  const auto start = whole_controller(size);
  if (!start) return 1;
  if (file.empty()) return 0;
  const kube::Json report = {
      {"machine", name}, {"usable_cores", processors}, {"passes", *reconciles}, {"start", *start}};
  const absl::Status written = write_file_atomically(file, report.dump(1) + "\n");
  if (!written.ok()) {
    std::fprintf(stderr, "controller_memory: %s\n", std::string(written.message()).c_str());
  }
  return written.ok() ? 0 : 1;
}

}  // namespace
}  // namespace paceline::benchmarks

int main(int argc, char** argv) {
  return paceline::benchmarks::run(argc, argv);
}
