// Runs worlds of the simulator, one for each seed: scripts/simulate starts it.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/simulation/world.h"

namespace {

std::uint64_t number_of(const char* text) {
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text, &end, 10);
  if (end != text && *end == '\0') return number;
  std::fprintf(stderr, "not a number: %s\n", text);
  std::exit(2);
}

void print_failure(std::uint64_t seed, const paceline::simulation::Outcome& outcome, bool traced) {
  const char* const commit = std::getenv("PACELINE_COMMIT");
  if (!traced) {
    for (const std::string& line : outcome.trace) std::printf("%s\n", line.c_str());
  }
  std::printf("seed %llu of commit %s fails: %s\n", static_cast<unsigned long long>(seed),
              commit == nullptr ? "?" : commit, outcome.failure->c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t from = 1, seeds = 1;
  bool trace = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--trace") {
      trace = true;
    } else if (i + 1 < argc && word == "--from") {
      from = number_of(argv[++i]);
    } else if (i + 1 < argc && word == "--seeds") {
      seeds = number_of(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: paceline-simulate [--from SEED] [--seeds N] [--trace]\n");
      return 2;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t events = 0, failures = 0;
  paceline::Duration time{};
  paceline::simulation::HandoverChecks::Counts handovers;
  int shares_set = 0;
  for (std::uint64_t seed = from; seed < from + seeds; ++seed) {
    const paceline::simulation::Outcome outcome = paceline::simulation::World(seed, trace).run();
    events += outcome.events;
    time += outcome.time;
    handovers.begun += outcome.handovers.begun;
    handovers.done += outcome.handovers.done;
    shares_set += outcome.shares_set;
    if (!outcome.failure) continue;
    ++failures;
    print_failure(seed, outcome, trace);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "%llu seeds, %llu failures, %llu events, %d of %d handovers, shares set %d times, %.1f virtual hours, "
      "%.1f s\n",
      static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(failures),
      static_cast<unsigned long long>(events), handovers.done, handovers.begun, shares_set,
      std::chrono::duration<double, std::ratio<3600>>(time).count(), took.count());
  return failures == 0 ? 0 : 1;
}
