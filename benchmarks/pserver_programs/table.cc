// bench_sparse_table OPTIMIZER ROWS DIM BATCH STEPS
//     one server's part of a sparse table, without a wire: grows to ROWS rows, then pulls and updates
//     batches. Prints rows; rows/s while it grew, in its first and in its last tenth; the longest update of
//     that, in us; then, with Zipf's keys, rows/s pulled and pushed (each row counts once for both), pulled,
//     and pushed
//
// All by the thread's processor time, so that others on the machine disturb little. A batch is BATCH
// different rows, drawn by Zipf's law with exponent 0.99 and sorted, before the clock runs. OPTIMIZER: sgd,
// adagrad, adam or ftrl.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "runtime/pserver/sparse/sparse_table.h"
#include "zipf.h"

namespace {

using namespace paceline::pserver::sparse;

constexpr std::size_t kBatches = 64;  // different ones, again and again

void check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  ::_exit(1);
}

long long used_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000LL + used.tv_nsec;
}

double rate(double rows, long long ns) {
  return rows * 1e9 / static_cast<double>(std::max(ns, 1LL));
}

TableSpec spec_of(const std::string& optimizer, std::size_t dim) {
  TableSpec spec;
  spec.name = "rows";
  spec.dim = dim;
  spec.initializer = {Initializer::Kind::kUniform, 0.01};
  spec.optimizer.learning_rate = 0.01;
  if (optimizer == "adagrad") spec.optimizer.kind = RowOptimizer::Kind::kAdagrad;
  if (optimizer == "adam") spec.optimizer.kind = RowOptimizer::Kind::kAdam;
  if (optimizer == "ftrl") spec.optimizer.kind = RowOptimizer::Kind::kFtrl;
  return spec;
}

void measure(const TableSpec& spec, std::uint64_t rows, std::size_t batch, int steps) {
  SparseTable table(spec, 1);
  std::vector<float> gradient(batch * spec.dim, 1e-3F), pulled(gradient.size());
  const auto update = [&](std::span<const RowId> ids) {
    const GradientRows parts[] = {{ids, gradient.data(), nullptr}};
    check(table.update(parts, 1, 1));
  };
  std::vector<RowId> ids;
  const std::uint64_t tenth = std::max<std::uint64_t>(rows / 10, 1);
  long long first = 0, last = 0, longest = 0;
  double first_rows = 0, last_rows = 0;
  for (RowId id = 0; id < rows;) {
    ids.clear();
    const RowId begin = id;
    for (; id < rows && ids.size() < batch; ++id) ids.push_back(id);
    const long long from = used_ns();
    update(ids);
    const long long took = used_ns() - from;
    longest = std::max(longest, took);
    if (begin < tenth) {
      first += took;
      first_rows += static_cast<double>(ids.size());
    }
    if (begin >= 9 * tenth) {
      last += took;
      last_rows += static_cast<double>(ids.size());
    }
  }
  bench::Zipf zipf(rows, 1);
  std::vector<std::vector<RowId>> batches;
  for (std::size_t k = 0; k < kBatches; ++k) batches.push_back(bench::batch_of(zipf, batch));
  long long pulls = 0, pushes = 0;
  for (int step = 0; step < steps; ++step) {
    const auto& each = batches[static_cast<std::size_t>(step) % kBatches];
    const long long from = used_ns();
    table.pull(each, pulled.data());
    const long long middle = used_ns();
    update(each);
    pulls += middle - from;
    pushes += used_ns() - middle;
  }
  const double total = static_cast<double>(steps) * static_cast<double>(batch);
  std::printf("%llu %.0f %.0f %.0f %.0f %.0f %.0f\n", static_cast<unsigned long long>(table.stats().rows),
              rate(first_rows, first), rate(last_rows, last), static_cast<double>(longest) / 1e3,
              rate(total, pulls + pushes), rate(total, pulls), rate(total, pushes));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6) {
    const auto number = [&](int k) { return std::strtoull(argv[k], nullptr, 10); };
    const std::uint64_t rows = number(2), batch = number(4);
    const TableSpec spec = spec_of(argv[1], number(3));
    if (paceline::pserver::sparse::check(spec).ok() && batch > 0 && rows >= 4 * batch) {
      measure(spec, rows, batch, static_cast<int>(number(5)));
      return 0;
    }
  }
  std::fprintf(
      stderr,
      "bench_sparse_table sgd|adagrad|adam|ftrl ROWS DIM BATCH STEPS, a batch being at most a quarter of "
      "the rows\n");
  return 2;
}
