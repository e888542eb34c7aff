// bench_allreduce RANKS shm|tcp|tls|heap ALGORITHM SOCKETS SIZE...: ranks as processes. `tls` is encrypted
// TCP, `shm` uses registered memory, `heap` shared memory with data that is not registered; ALGORITHM is
// auto, ring, recursive-doubling, halving-doubling, direct, direct-whole or direct-blocks. bench_allreduce
// copy: bytes per second that one core copies.

#include <unistd.h>

#include <cstring>
#include <string>

#include "benchmarks/pserver_programs/meet.h"
#include "measure.h"

namespace {

using namespace paceline;
using namespace paceline::collective;

Algorithm parse_algorithm(const std::string& name) {
  if (name == "ring") return Algorithm::kRing;
  if (name == "recursive-doubling") return Algorithm::kRecursiveDoubling;
  if (name == "halving-doubling") return Algorithm::kHalvingDoubling;
  if (name == "direct") return Algorithm::kDirect;
  if (name == "direct-whole") return Algorithm::kDirectWhole;
  if (name == "direct-blocks") return Algorithm::kDirectBlocks;
  return Algorithm::kAuto;
}

void die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  ::_exit(1);
}

struct Options {
  int ranks;
  std::string transport;
  Algorithm algorithm;
  int sockets;
  std::vector<std::size_t> sizes;
};

void rank_main(const Options& options, int rank, bench::Meeting& meeting) {
  SystemClock clock;
  FabricOptions fabric_options;
  fabric_options.sockets_per_peer = options.sockets;
  auto fabric = Fabric::create(fabric_options, clock);
  if (!fabric.ok()) die(fabric.status());
  const Group group = bench::meet(**fabric, options.transport, rank, meeting);
  const auto deadline = [&] { return Deadline::after(clock.now(), std::chrono::seconds(60)); };
  auto communicator = (*fabric)->connect(group, deadline());
  if (!communicator.ok()) die(communicator.status());
  measure::run(
      options.sizes, rank == 0,
      [&](std::size_t bytes) {
        if (options.transport == "heap") return measure::pages(bytes);
        auto memory = (*fabric)->arena().allocate(bytes);
        if (!memory.ok()) die(memory.status());
        return reinterpret_cast<float*>(memory->data());
      },
      [&](float* data, std::size_t count) {
        const absl::Status status =
            (*communicator)
                ->all_reduce(data, count, DType::kF32, ReduceOp::kSum, deadline(), options.algorithm);
        if (!status.ok()) die(status);
      },
      [&] { (void)(*communicator)->barrier(deadline()); });
  (void)(*communicator)->barrier(deadline());
}

int copy_rate() {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  long long best = 1LL << 62;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    asm volatile("" : : "r"(to.data()) : "memory");
    const auto took =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
            .count();
    best = took < best ? took : best;
  }
  std::printf("%.0f\n", static_cast<double>(kBytes) * 1e9 / static_cast<double>(best));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "copy") return copy_rate();
  if (argc < 6) {
    std::fprintf(stderr, "bench_allreduce RANKS shm|tcp|tls|heap ALGORITHM SOCKETS SIZE...\n");
    return 2;
  }
  const Options options{std::atoi(argv[1]), argv[2], parse_algorithm(argv[3]), std::atoi(argv[4]),
                        measure::parse_sizes(5, argc, argv)};
  return bench::run(options.ranks,
                    [&](int rank, bench::Meeting& meeting) { rank_main(options, rank, meeting); });
}
