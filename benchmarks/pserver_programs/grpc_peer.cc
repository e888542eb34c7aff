// bench_pserver_grpc WORKERS SERVERS BYTES STEPS: the same bytes between the same processes by gRPC, which
// sums nothing: each worker calls every server with its part, and is answered with as much. The nanoseconds
// of worker 0's rounds.

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "grpc_group.h"
#include "processes.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "bench_pserver_grpc WORKERS SERVERS BYTES STEPS\n");
    return 2;
  }
  constexpr char kMethod[] = "/bench/PushPull";
  const int workers = std::atoi(argv[1]), servers = std::atoi(argv[2]), steps = std::atoi(argv[4]);
  const std::size_t part = std::strtoull(argv[3], nullptr, 10) / static_cast<std::size_t>(servers);
  return bench::run(workers + servers, [&](int index, bench::Meeting& meeting) {
    if (index >= workers) {
      const bench::GrpcServer server(part, {{kMethod, part}});
      server.meet(meeting);
      meeting.barrier();
      return;
    }
    bench::GrpcWorker worker(meeting, servers, part);
    const std::vector<std::vector<char>> gradients(worker.servers(), std::vector<char>(part, 1));
    std::vector<long long> times;
    for (int step = 0; step < steps; ++step) {
      const long long begin = bench::now_ns();
      std::vector<grpc::ByteBuffer> requests;
      for (const auto& gradient : gradients) requests.push_back(bench::view(gradient));
      worker.call(kMethod, std::move(requests));
      times.push_back(bench::now_ns() - begin);
    }
    if (index == 0) bench::print(times);
    meeting.barrier();
  });
}
