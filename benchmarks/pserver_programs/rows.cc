// bench_pserver_rows shm|tcp WORKERS SERVERS ROWS DIM BATCH STEPS
//     asynchronous training of one sparse table of ROWS rows of DIM floats (Adagrad) by parameter servers,
//     nothing computed: each step a worker pulls BATCH different rows, drawn by Zipf's law, pushes a gradient
//     for each of them, commits and gets its next turn. Prints
//         steps NS...      of worker 0, each a pull, a push and a turn, after a tenth as many to warm up
//         server NS ROWS   of each server: processor time of the process in those steps of all workers, and
//                          how many rows it had of them, each of which it both gave and updated
//
// Batches are drawn before the clock runs; the table is full before the first step.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "benchmarks/pserver_programs/meet.h"
#include "group.h"
#include "processes.h"
#include "processor_time.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/sparse/row_hash.h"
#include "zipf.h"

namespace {

using namespace paceline;
using bench::check;
using bench::soon;
using bench::value_of;
using pserver::sparse::RowId;

constexpr std::size_t kBatches = 64;  // different ones of a worker, again and again

struct Shape {
  int workers = 1, servers = 1;
  std::uint64_t rows = 0;
  std::size_t dim = 1, batch = 1;
  int steps = 1;
  int warm_up() const { return steps / 10 + 1; }
};

pserver::sparse::TableSpec table_of(const Shape& shape) {
  pserver::sparse::TableSpec spec;
  spec.name = "rows";
  spec.dim = shape.dim;
  spec.initializer = {pserver::sparse::Initializer::Kind::kUniform, 0.01};
  spec.optimizer.kind = pserver::sparse::RowOptimizer::Kind::kAdagrad;
  spec.optimizer.learning_rate = 0.01;
  return spec;
}

std::vector<std::vector<RowId>> batches_of(const Shape& shape, int worker) {
  bench::Zipf zipf(shape.rows, 1 + static_cast<std::uint64_t>(worker));
  std::vector<std::vector<RowId>> batches;
  for (std::size_t k = 0; k < kBatches; ++k) batches.push_back(bench::batch_of(zipf, shape.batch));
  return batches;
}

// All rows, with zeros.
class AllRows final : public pserver::sparse::RowSource {
 public:
  explicit AllRows(const Shape& shape) : shape_(shape) {}
  absl::StatusOr<int> next(pserver::sparse::SavedRows& rows) override {
    for (; next_ < shape_.rows && rows.size() < 4096; ++next_) rows.ids.push_back(next_);
    rows.last.assign(rows.size(), 0);
    rows.uses.assign(rows.size(), 1);
    rows.steps.assign(rows.size(), 1);
    rows.floats.assign(rows.size() * 2 * shape_.dim, 0);
    return 0;
  }

 private:
  const Shape shape_;
  RowId next_ = 0;
};

void serve(collective::Fabric& fabric, const collective::Group& group, const pserver::ClientOptions& cut,
           const Shape& shape, bench::Meeting& meeting) {
  SystemClock clock;
  v1::ParameterServerSpec mode;
  mode.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
  mode.set_workers(shape.workers);
  mode.set_gradients_per_step(shape.workers);
  mode.set_units_per_step(shape.workers);
  const auto server = bench::connect_server(fabric, group, cut, mode, clock);
  std::jthread runs([&] { check(server->run(soon(clock))); });
  meeting.barrier();
  const long long before = bench::used_ns();
  meeting.barrier();
  const long long used = bench::used_ns() - before;
  unsigned long long mine = 0;
  for (int w = 0; w < shape.workers; ++w) {
    const auto batches = batches_of(shape, w);
    for (int step = 0; step < shape.steps; ++step) {
      for (const RowId id : batches[static_cast<std::size_t>(shape.warm_up() + step) % kBatches]) {
        mine += pserver::sparse::server_of(id, shape.servers) == group.rank - shape.workers ? 1 : 0;
      }
    }
  }
  (void)meeting.exchange(str_cat(used, " ", mine));
}

void work(pserver::Client& client, std::span<float> gradient, std::span<float> row_gradient, int index,
          const Shape& shape, bench::Meeting& meeting) {
  SystemClock clock;
  if (index == 0) {
    const std::vector<float> initial(gradient.size(), 1.0F);
    AllRows rows(shape);
    pserver::InitialState state;
    state.weights = initial;
    state.start.total_steps = 2 * (shape.steps + shape.warm_up());  // some are other workers'
    state.rows = &rows;
    check(client.initialize(state, soon(clock)));
  }
  const auto batches = batches_of(shape, index);
  std::vector<float> rows(row_gradient.size());
  std::vector<long long> times;
  check(client.wait_turn(soon(clock)).status());
  for (int step = 0; step < shape.warm_up() + shape.steps; ++step) {
    if (step == shape.warm_up()) meeting.barrier();
    const auto& ids = batches[static_cast<std::size_t>(step) % kBatches];
    const pserver::sparse::RowsPull pulls[] = {{0, ids, rows}};
    const pserver::sparse::RowsPush pushes[] = {{0, ids, row_gradient}};
    const long long begin = bench::now_ns();
    check(client.pull_rows(pulls, soon(clock)));
    check(client.push(0, gradient.size()));
    check(client.push_rows(pushes));
    check(client.commit({}));
    check(client.wait_turn(soon(clock)).status());
    if (step >= shape.warm_up()) times.push_back(bench::now_ns() - begin);
  }
  meeting.barrier();
  const std::vector<std::string> told = meeting.exchange("");
  check(client.leave());
  if (index == 0) bench::print(times, std::span(told).subspan(static_cast<std::size_t>(shape.workers)));
}

void member(const std::string& transport, const Shape& shape, int index, bench::Meeting& meeting) {
  SystemClock clock;
  const auto fabric = value_of(collective::Fabric::create({}, clock));
  const collective::Group group = bench::meet(*fabric, transport, index, meeting);
  const pserver::ClientOptions cut{shape.workers, shape.servers, 0, {table_of(shape)}};
  if (index >= shape.workers) return serve(*fabric, group, cut, shape, meeting);
  constexpr std::size_t kDense = 16;  // elements: what is measured is rows
  const auto memory = value_of(fabric->arena().allocate((kDense + shape.batch * shape.dim) * sizeof(float)));
  const std::span<float> gradient(reinterpret_cast<float*>(memory.data()), kDense);
  const std::span<float> row_gradient(gradient.data() + kDense, shape.batch * shape.dim);
  std::fill(row_gradient.begin(), row_gradient.end(), 1e-3F);
  std::vector<float> weights(kDense, 1.0F);
  const auto client = value_of(pserver::Client::connect(*fabric, group, cut, bench::layout_of(kDense),
                                                        weights, gradient, clock, soon(clock)));
  work(*client, gradient, row_gradient, index, shape, meeting);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int k) { return std::strtoull(argv[k], nullptr, 10); };
  if ((what == "shm" || what == "tcp") && argc == 8) {
    const Shape shape{
        static_cast<int>(number(2)), static_cast<int>(number(3)), number(4), number(5), number(6),
        static_cast<int>(number(7))};
    if (shape.workers > 0 && shape.servers > 0 && shape.steps > 0 && shape.batch > 0 &&
        shape.rows >= 4 * shape.batch && pserver::sparse::check(table_of(shape)).ok()) {
      return bench::run(shape.workers + shape.servers,
                        [&](int index, bench::Meeting& m) { member(what, shape, index, m); });
    }
  }
  std::fprintf(
      stderr,
      "bench_pserver_rows shm|tcp WORKERS SERVERS ROWS DIM BATCH STEPS, a batch being at most a quarter "
      "of the rows\n");
  return 2;
}
