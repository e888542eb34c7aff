// What heartbeats and timers cost a training step, on against off, alternating.
//
//   heartbeat [--tiny]
//
// A step is a fixed amount of arithmetic of about 5 ms. "On": the step clock with six parts, the progress
// board, a weights' hash, and a membership that sends heartbeats every 200 ms to a coordinator over gRPC;
// "off": the arithmetic alone. The coordinator is in this process too, so that its share is counted against
// us. Prints medians of the training thread's processor time, of wall time, and the processor time of all
// other threads.

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/coordinator/server.h"
#include "runtime/member/membership.h"
#include "runtime/member/step_clock.h"

namespace paceline {
namespace {

struct Size {
  int rounds = 12, steps = 100, tight_steps = 1'000'000;
};

constexpr double kStepSeconds = 5e-3;
constexpr const char* kToken = "a-token-of-some-length";

double cpu_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Multiply-adds that the compiler can't leave out.
double work(int count) {
  volatile double seed = 1.0;
  double a = seed, b = 0.5;
  for (int i = 0; i < count; ++i) a = a * 0.999999 + b;
  seed = a;
  return a;
}

int calibrate() {
  double best = 1e9;
  constexpr int kProbe = 1'000'000;
  for (int i = 0; i < 5; ++i) {
    const double before = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    work(kProbe);
    best = std::min(best, cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - before);
  }
  return static_cast<int>(kProbe * kStepSeconds / best);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Block {
  std::vector<double> thread, wall;  // seconds of each step
  double others = 0;                 // processor seconds of other threads, per second of wall time
};

class Job {
 public:
  explicit Job(const Clock& clock) : clock_(clock) { server_ = *coordinator::Server::start({}, clock); }

  std::unique_ptr<member::Membership> attach(int round) {
    coordinator::JobConfig config;
    config.core.job = "default/benchmark";
    config.core.link_key = std::string(32, 'k');
    config.core.roles = {{Role::kWorker, 1}};
    config.token = kToken;
    handle_.reset();
    handle_ = *server_->add_job(config);
    member::Environment environment;
    environment.coordinator = server_->address();
    environment.job = config.core.job;
    environment.pod = environment.pod_uid = "pod-" + std::to_string(round);
    environment.token = kToken;
    const Deadline deadline = Deadline::after(clock_.now(), std::chrono::seconds(10));
    auto member = *member::Membership::attach(environment, {}, {}, clock_, deadline);
    if (!member->wait_view(Generation{0}, deadline).ok()) return nullptr;
    member->progress().set_generation(Generation{1});
    member->progress().set_phase(v1::TRAINING);
    return member;
  }

 private:
  const Clock& clock_;
  std::unique_ptr<coordinator::Server> server_;
  std::shared_ptr<coordinator::Job> handle_;
};

void timed_step(member::StepClock& clock, member::Progress& progress, Step step, int count) {
  clock.begin();
  { const auto part = clock.part(member::StepPart::kInput); }
  {
    const auto part = clock.part(member::StepPart::kCompute);
    work(count);
  }
  { const auto part = clock.part(member::StepPart::kWait); }
  clock.move(member::StepPart::kWait, member::StepPart::kTransfer, Duration(1));
  { const auto part = clock.part(member::StepPart::kUpdate); }
  { const auto part = clock.part(member::StepPart::kCheckpoint); }
  progress.step_applied({step, step * 64, clock.end(), 0, true, 0.5, 0.1, step});
  progress.set_weights_hash(step, static_cast<std::uint64_t>(step) * 31);
}

template <typename StepFunction>
Block run(int steps, const Clock& clock, StepFunction step) {
  Block block;
  const double process = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), thread = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  const TimePoint begin = clock.now();
  for (int i = 1; i <= steps; ++i) {
    const double before = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    const TimePoint start = clock.now();
    step(i);
    block.wall.push_back(std::chrono::duration<double>(clock.now() - start).count());
    block.thread.push_back(cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - before);
  }
  const double mine = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - thread;
  block.others = (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - process - mine) /
                 std::chrono::duration<double>(clock.now() - begin).count();
  return block;
}

int benchmark(const Size& size) {
  SystemClock clock;
  Job job(clock);
  const int count = calibrate();
  std::vector<double> on_thread, off_thread, on_wall, off_wall, on_others, off_others;
  for (int round = 0; round < size.rounds; ++round) {
    const Block off = run(size.steps, clock, [&](Step) { work(count); });
    const auto member = job.attach(round);
    if (member == nullptr) return 1;
    member::StepClock steps(clock, &member->progress().current_part());
    const Block on =
        run(size.steps, clock, [&](Step step) { timed_step(steps, member->progress(), step, count); });
    (void)member->leave({}, Deadline::after(clock.now(), std::chrono::seconds(5)));
    on_thread.push_back(median(on.thread));
    off_thread.push_back(median(off.thread));
    on_wall.push_back(median(on.wall));
    off_wall.push_back(median(off.wall));
    on_others.push_back(on.others);
    off_others.push_back(off.others);
  }
  member::Progress board(&clock);
  member::StepClock steps(clock, &board.current_part());
  const double before = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 1; i <= size.tight_steps; ++i) timed_step(steps, board, i, 0);
  const double tight = (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - before) / size.tight_steps;

  const auto percent = [](double on, double off) { return 100 * (on / off - 1); };
  const double others = 100 * (median(on_others) - median(off_others));
  const double timers = 100 * tight / kStepSeconds;
  std::printf("%-44s %10s %10s %9s\n", "", "off", "on", "cost");
  std::printf("%-44s %8.1fus %8.1fus %8.3f%%\n", "step, processor time of the training thread",
              1e6 * median(off_thread), 1e6 * median(on_thread),
              percent(median(on_thread), median(off_thread)));
  std::printf("%-44s %8.1fus %8.1fus %8.3f%%\n", "step, wall time", 1e6 * median(off_wall),
              1e6 * median(on_wall), percent(median(on_wall), median(off_wall)));
  std::printf("%-44s %9.3f%% %9.3f%% %8.3f%%\n", "others' part of a core (gRPC, coordinator)",
              100 * median(off_others), 100 * median(on_others), others);
  std::printf("timers and board alone: %.0f ns a step, %.4f %% of 5 ms\n", 1e9 * tight, timers);
  std::printf("total: %.3f %% of a 5 ms step (limit 0.5 %%)\n", others + timers);
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  paceline::Size size;
  if (argc == 2 && std::strcmp(argv[1], "--tiny") == 0) size = {1, 4, 1000};
  return paceline::benchmark(size);
}
