// bench_pserver_rows_grpc WORKERS SERVERS DIM BATCH STEPS: the bytes that bench_pserver_rows moves, between
// the same processes by gRPC, which looks nothing up and updates nothing: each step a worker asks every
// server for its part of the rows (8 bytes an id there, 4 a float back) and then sends ids and gradients.
// Prints as bench_pserver_rows does.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"
#include "grpc_group.h"
#include "processes.h"
#include "processor_time.h"

namespace {

constexpr char kPull[] = "/bench/Pull", kPush[] = "/bench/Push";

struct Part {
  std::size_t rows = 0, ids = 0, floats = 0;  // bytes, but for rows
};

void serve(const Part& part, int workers, int steps, bench::Meeting& meeting) {
  const bench::GrpcServer server(part.ids + part.floats, {{kPull, part.floats}, {kPush, 1}});
  server.meet(meeting);
  meeting.barrier();
  const long long before = bench::used_ns();
  meeting.barrier();
  const std::size_t rows = part.rows * static_cast<std::size_t>(steps) * static_cast<std::size_t>(workers);
  (void)meeting.exchange(paceline::str_cat(bench::used_ns() - before, " ", rows));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "bench_pserver_rows_grpc WORKERS SERVERS DIM BATCH STEPS\n");
    return 2;
  }
  const int workers = std::atoi(argv[1]), servers = std::atoi(argv[2]), steps = std::atoi(argv[5]);
  const std::size_t dim = std::strtoull(argv[3], nullptr, 10), batch = std::strtoull(argv[4], nullptr, 10);
  const std::size_t rows = batch / static_cast<std::size_t>(servers);
  const Part part{rows, rows * 8, rows * dim * 4};
  return bench::run(workers + servers, [&](int index, bench::Meeting& meeting) {
    if (index >= workers) return serve(part, workers, steps, meeting);
    bench::GrpcWorker worker(meeting, servers, part.floats + 1);
    const std::vector<char> ids(part.ids, 1), ids_and_gradients(part.ids + part.floats, 1);
    const auto step = [&] {
      worker.call(kPull, std::vector<grpc::ByteBuffer>(worker.servers(), bench::view(ids)));
      worker.call(kPush, std::vector<grpc::ByteBuffer>(worker.servers(), bench::view(ids_and_gradients)));
    };
    for (int i = 0; i < steps / 10 + 1; ++i) step();
    meeting.barrier();
    std::vector<long long> times;
    for (int i = 0; i < steps; ++i) {
      const long long begin = bench::now_ns();
      step();
      times.push_back(bench::now_ns() - begin);
    }
    meeting.barrier();
    const std::vector<std::string> told = meeting.exchange("");
    if (index == 0) bench::print(times, std::span(told).subspan(static_cast<std::size_t>(workers)));
  });
}
