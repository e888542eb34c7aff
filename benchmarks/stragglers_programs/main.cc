// bench_stragglers backups WORKERS SIGMA
//     how many of WORKERS are best spare, on paper
// bench_stragglers modes TRANSPORT WORKERS SERVERS BYTES STEPS SEED SIGMA BACKUPS STALENESS,...
//     every mode: a line of JSON each, measured and simulated
// bench_stragglers slow TRANSPORT WORKERS SERVERS BYTES STEPS SEED SIGMA BACKUPS
//     N+b, where all workers are alike, and where the last one takes 10 times longer: two such lines
// bench_stragglers bare TRANSPORT WORKERS SERVERS BYTES STEPS
//     the synchronous mode without delays: such a line
//
// TRANSPORT is shm or tcp, BYTES those of a gradient. A worker's delay, LogNormal(3, SIGMA) ms, is slept
// between its turn and its push; its k-th one is the same as that of the same worker in the simulation.

#include <sys/mman.h>
#include <sys/prctl.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../pserver_programs/group.h"
#include "../pserver_programs/processes.h"
#include "base/check.h"
#include "base/text.h"
#include "runtime/simulation/stragglers.h"
#include "worker_tally.h"

namespace {

using namespace paceline;
using simulation::Mode;
using simulation::ModeResult;

constexpr double kSlowFactor = 10;
constexpr int kRoundsForBackups = 20'000;
constexpr int kMostMembers = 64;
constexpr std::int64_t kMostBytes = 1 << 30;

struct Setting {
  std::string transport;
  bench::Shape shape;
  simulation::StragglerOptions study;  // delays, steps, seed
};

// What the workers leave behind, in memory that forked processes share.
class Records {
 public:
  explicit Records(int workers) : count_(static_cast<std::size_t>(workers)) {
    void* const at = ::mmap(nullptr, count_ * sizeof(bench::WorkerRecord), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PL_CHECK(at != MAP_FAILED, "memory for records");
    records_ = static_cast<bench::WorkerRecord*>(at);
    for (std::size_t k = 0; k < count_; ++k) new (records_ + k) bench::WorkerRecord();
  }
  ~Records() { ::munmap(records_, count_ * sizeof(bench::WorkerRecord)); }
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;
  std::span<bench::WorkerRecord> all() { return {records_, count_}; }

 private:
  std::size_t count_;
  bench::WorkerRecord* records_;
};

void work(pserver::Client& client, const Clock& clock, int worker, const Setting& setting, double samples,
          bench::WorkerRecord& record) {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // a sleep ends when it should
  simulation::Delays delays(setting.study.delays, setting.shape.workers, setting.study.seed);
  bench::WorkerTally tally;
  while (true) {
    const pserver::TurnResult turn = bench::value_of(client.wait_turn(bench::soon(clock)));
    const TimePoint now = clock.now();
    tally.turn(turn, now);
    if (turn.finished) break;
    const std::chrono::duration<double, std::milli> delay(samples * delays.next_ms(worker));
    std::this_thread::sleep_until(now + std::chrono::duration_cast<Duration>(delay));
    tally.computed(clock.now());
    bench::check(client.push(0, setting.shape.elements()));
    bench::check(client.commit({}));
  }
  bench::check(client.leave());
  record = tally.record();
}

ModeResult measure(const Mode& mode, const Setting& setting) {
  Records records(setting.shape.workers);
  const bench::GroupOptions group{setting.transport, setting.shape, mode.spec, setting.study.steps};
  const auto one = [&](int index, bench::Meeting& meeting) {
    bench::member(group, index, meeting, [&](pserver::Client& client, const Clock& clock) {
      work(client, clock, index, setting, mode.samples_per_gradient(),
           records.all()[static_cast<std::size_t>(index)]);
    });
  };
  if (bench::run(setting.shape.workers + setting.shape.servers, one) != 0) {
    bench::die(absl::UnavailableError(str_cat(mode.name, ": a process failed")));
  }
  const simulation::ClusterReport report = bench::value_of(bench::together(records.all()));
  if (report.steps != setting.study.steps) {
    bench::die(absl::InternalError(str_cat(mode.name, " ended after ", report.steps, " steps")));
  }
  return simulation::rated(mode, report);
}

nlohmann::ordered_json json_of(const ModeResult& result) {
  return {{"stepMs", result.report.step_ms()},
          {"gradientsPerMs", result.gradients_per_ms},
          {"dropped", result.report.dropped_part()},
          {"waiting", result.report.waiting},
          {"meanStaleness", result.report.staleness.mean()},
          {"maxStaleness", result.report.staleness.max()}};
}

void compare(const Mode& mode, const Setting& setting) {
  const ModeResult simulated = bench::value_of(simulation::simulate_mode(mode, setting.study));
  const nlohmann::ordered_json line = {{"mode", mode.name},
                                       {"slowWorkers", setting.study.delays.slow_workers},
                                       {"batch", mode.batch()},
                                       {"measured", json_of(measure(mode, setting))},
                                       {"simulated", json_of(simulated)}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);  // or the next processes have it, too
}

// ---- the command line ----

[[noreturn]] void usage(const std::string& wrong) {
  std::fprintf(stderr,
               "bench_stragglers: %s\n"
               "bench_stragglers backups WORKERS SIGMA\n"
               "  modes shm|tcp WORKERS SERVERS BYTES STEPS SEED SIGMA BACKUPS STALENESS,...\n"
               "  slow shm|tcp WORKERS SERVERS BYTES STEPS SEED SIGMA BACKUPS\n"
               "  bare shm|tcp WORKERS SERVERS BYTES STEPS\n",
               wrong.c_str());
  std::exit(2);
}

// The arguments one after the other, each a number of its own range.
class Arguments {
 public:
  Arguments(int argc, char** argv) : words_(argv + 1, argv + argc) {}

  std::string word(const char* what) {
    if (at_ == words_.size()) usage(str_cat(what, " is missing"));
    return words_[at_++];
  }
  template <typename Number>
  Number number(const char* what, Number low, Number high) {
    return parse(what, word(what), low, high);
  }
  std::vector<int> list(const char* what, int low, int high) {
    std::string rest = word(what);
    std::vector<int> values;
    while (true) {
      const std::size_t comma = rest.find(',');
      values.push_back(parse(what, rest.substr(0, comma), low, high));
      if (comma == std::string::npos) return values;
      rest = rest.substr(comma + 1);
    }
  }
  void end() {
    if (at_ != words_.size()) usage(str_cat("\"", words_[at_], "\" is one argument too many"));
  }

 private:
  template <typename Number>
  static Number parse(const char* what, const std::string& text, Number low, Number high) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value >= low && value <= high)) {
      usage(str_cat(what, " is \"", text, "\"; allowed: ", low, " to ", high));
    }
    return value;
  }

  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

Setting read_setting(Arguments& arguments) {
  Setting setting;
  setting.transport = arguments.word("TRANSPORT");
  if (setting.transport != "shm" && setting.transport != "tcp") {
    usage(str_cat("TRANSPORT is \"", setting.transport, "\"; allowed: shm, tcp"));
  }
  setting.shape.workers = arguments.number("WORKERS", 1, kMostMembers);
  setting.shape.servers = arguments.number("SERVERS", 1, kMostMembers);
  setting.shape.bytes =
      static_cast<std::size_t>(arguments.number<std::int64_t>("BYTES", sizeof(float), kMostBytes));
  setting.study.steps = arguments.number<Step>("STEPS", 1, 1'000'000);
  return setting;
}

int read_delays(Arguments& arguments, Setting& setting) {
  setting.study.seed = arguments.number<std::uint64_t>("SEED", 0, std::numeric_limits<std::uint64_t>::max());
  setting.study.delays.log_deviation = arguments.number("SIGMA", 0.0, 3.0);
  return arguments.number("BACKUPS", 0, setting.shape.workers - 1);
}

void backups(Arguments& arguments) {
  const int workers = arguments.number("WORKERS", 1, kMostMembers);
  const simulation::DelayModel delays{.log_deviation = arguments.number("SIGMA", 0.0, 3.0)};
  arguments.end();
  const auto order = simulation::order_statistics(delays, workers, kRoundsForBackups, 1);
  std::printf("%d\n", simulation::best_backups(order));
}

void modes(Arguments& arguments) {
  Setting setting = read_setting(arguments);
  const int spare = read_delays(arguments, setting);
  const std::vector<int> staleness = arguments.list("STALENESS", 0, 1'000'000);
  arguments.end();
  for (const Mode& mode : simulation::modes_to_compare(setting.shape.workers, spare, staleness)) {
    compare(mode, setting);
  }
}

void slow(Arguments& arguments) {
  Setting setting = read_setting(arguments);
  const int spare = read_delays(arguments, setting);
  arguments.end();
  const Mode mode = simulation::with_backups(setting.shape.workers, spare);
  compare(mode, setting);
  setting.study.delays.slow_workers = 1;
  setting.study.delays.slow_factor = kSlowFactor;
  compare(mode, setting);
}

void bare(Arguments& arguments) {
  Setting setting = read_setting(arguments);
  arguments.end();
  setting.study.delays.log_mean = -std::numeric_limits<double>::infinity();  // e^that is 0
  compare(simulation::synchronous(setting.shape.workers), setting);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const std::string what = arguments.word("what to do");
  if (what == "backups") {
    backups(arguments);
  } else if (what == "modes") {
    modes(arguments);
  } else if (what == "slow") {
    slow(arguments);
  } else if (what == "bare") {
    bare(arguments);
  } else {
    usage(str_cat("\"", what, "\" is nothing that it does"));
  }
  return 0;
}
