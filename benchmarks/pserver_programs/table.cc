// bench_sparse_table OPTIMIZER ROWS DIM BATCH STEPS
//     one server's part of a sparse table, without a wire. Grows to ROWS rows, then pulls and updates batches;
//     then as much with a plain array of such rows. Prints
//       growth LONGEST, then for the first and for the last tenth: ROWS OWN_ROWS TOUCH
//       table ROWS BYTES
//       table_rows BOTH PULLED PUSHED
//       array_rows BOTH PULLED PUSHED
//
// growth: the longest update in us; rows/s; rows/s of the time that was not the kernel's, which takes new pages
// in it; and, right after that tenth, how fast plain memory of the same kind is touched for the first time
// (bytes/s). A virtual machine may get memory from its host only as it is touched for the first time, at a
// fraction of the rate at which the kernel hands out what it has. The kernel's part is counted in ticks of some
// ms: of a tenth that takes less than 200 ms it is not known, and OWN_ROWS is 0.
//
// table_rows: rows/s pulled and pushed (each row counts once for both), pulled, pushed. array_rows: the same
// batches and the same arithmetic in an array where row k lies at k, fetched ahead, without an index or notes:
// what this machine's memory lets a table of that size reach.
//
// All by the thread's processor time, so that others on the machine disturb little. A batch is BATCH different
// rows, drawn by Zipf's law with exponent 0.99 and sorted, before the clock runs; no batch comes twice, so the
// law's long tail is as cold as in training. OPTIMIZER: sgd, adagrad, adam or ftrl.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "runtime/pserver/sparse/huge_block.h"
#include "runtime/pserver/sparse/row_optimizer.h"
#include "runtime/pserver/sparse/sparse_table.h"
#include "zipf.h"

namespace {

using namespace paceline::pserver::sparse;
using Batches = std::vector<std::vector<RowId>>;

void check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  ::_exit(1);
}

HugeBlock memory(std::size_t bytes) {
  auto block = HugeBlock::create(bytes);
  check(block.status());
  return *std::move(block);
}

long long used_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000LL + used.tv_nsec;
}

double rate(double count, long long ns) {
  return count * 1e9 / static_cast<double>(std::max(ns, 1LL));
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

struct Table {
  explicit Table(const TableSpec& spec) : table(spec, 1) {}
  void pull(const std::vector<RowId>& ids, float* rows) { table.pull(ids, rows); }
  void update(const std::vector<RowId>& ids, const float* gradient) {
    const GradientRows parts[] = {{ids, gradient, nullptr}};
    check(table.update(parts, 1, 1));
  }
  SparseTable table;
};

// Row k at k.
struct Array {
  Array(const TableSpec& spec, std::uint64_t rows)
      : dim(spec.dim),
        stepper(spec.optimizer, spec.dim),
        block(memory(rows * stepper.row_floats() * sizeof(float))) {
    std::memset(block.data(), 0, block.size());
  }
  float* row(RowId id) const {
    return reinterpret_cast<float*>(block.data()) + id * stepper.row_floats();
  }
  template <typename Each>
  void each(const std::vector<RowId>& ids, std::size_t floats, Each each) {
    constexpr std::size_t kAhead = 16;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const auto* const ahead = reinterpret_cast<const char*>(row(ids[std::min(k + kAhead, ids.size() - 1)]));
      for (std::size_t at = 0; at < floats * sizeof(float); at += 64) __builtin_prefetch(ahead + at);
      each(k, row(ids[k]));
    }
  }
  void pull(const std::vector<RowId>& ids, float* rows) {
    each(ids, dim,
         [&](std::size_t k, const float* from) { std::memcpy(rows + k * dim, from, dim * sizeof(float)); });
  }
  void update(const std::vector<RowId>& ids, const float* gradient) {
    stepper.begin(1, 1);
    each(ids, stepper.row_floats(),
         [&](std::size_t k, float* to) { stepper.step(to, gradient + k * dim, 1); });
  }
  const std::size_t dim;
  RowStepper stepper;
  HugeBlock block;
};

// Of about so many bytes, which stay in `touched` so that the next ones are others.
double touch_rate(std::size_t bytes, std::vector<HugeBlock>& touched) {
  touched.push_back(memory(bytes));
  HugeBlock& block = touched.back();
  const long long from = used_ns();
  for (std::size_t at = 0; at < block.size(); at += 4096) block.data()[at] = std::byte{1};
  return rate(static_cast<double>(block.size()), used_ns() - from);
}

constexpr long long kKnownFrom = 200'000'000;  // ns

double kernel_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return static_cast<double>(used.ru_stime.tv_sec) + static_cast<double>(used.ru_stime.tv_usec) / 1e6;
}

struct Tenth {
  double rows_per_second, own_rows_per_second, touch_rate;
};

void grow(Table& table, std::uint64_t rows, std::size_t batch, const float* gradient) {
  std::vector<HugeBlock> touched;
  std::vector<RowId> ids;
  Tenth tenths[10];
  long long longest = 0;
  RowId id = 0;
  for (std::uint64_t k = 0; k < 10; ++k) {
    const RowId begin = id, end = rows * (k + 1) / 10;
    const double kernel = kernel_seconds();
    long long used = 0;
    while (id < end) {
      ids.clear();
      for (; id < end && ids.size() < batch; ++id) ids.push_back(id);
      const long long from = used_ns();
      table.update(ids, gradient);
      const long long took = used_ns() - from;
      used += took;
      longest = std::max(longest, took);
    }
    const auto own = used - static_cast<long long>((kernel_seconds() - kernel) * 1e9);
    const bool known = used >= kKnownFrom && own > 0;
    const auto made = static_cast<double>(end - begin);
    tenths[k] = {rate(made, used), known ? rate(made, own) : 0,
                 touch_rate(table.table.stats().bytes / 100, touched)};
  }
  std::printf("growth %.0f", static_cast<double>(longest) / 1e3);
  for (const Tenth& each : {tenths[0], tenths[9]}) {
    std::printf(" %.0f %.0f %.0f", each.rows_per_second, each.own_rows_per_second, each.touch_rate);
  }
  std::printf("\n");
}

template <typename Rows>
void look_up(const char* name, Rows& rows, const Batches& batches, const float* gradient, float* pulled) {
  long long pulls = 0, pushes = 0;
  for (const auto& each : batches) {
    const long long from = used_ns();
    rows.pull(each, pulled);
    const long long middle = used_ns();
    rows.update(each, gradient);
    pulls += middle - from;
    pushes += used_ns() - middle;
  }
  const double total = static_cast<double>(batches.size() * batches[0].size());
  std::printf("%s %.0f %.0f %.0f\n", name, rate(total, pulls + pushes), rate(total, pulls), rate(total, pushes));
}

void measure(const TableSpec& spec, std::uint64_t rows, std::size_t batch, int steps) {
  const std::vector<float> gradient(batch * spec.dim, 1e-3F);
  std::vector<float> pulled(gradient.size());
  bench::Zipf zipf(rows, 1);
  Batches batches;
  for (int k = 0; k < steps; ++k) batches.push_back(bench::batch_of(zipf, batch));
  {
    Table table(spec);
    grow(table, rows, batch, gradient.data());
    const TableStats stats = table.table.stats();
    std::printf("table %llu %llu\n", static_cast<unsigned long long>(stats.rows),
                static_cast<unsigned long long>(stats.bytes));
    look_up("table_rows", table, batches, gradient.data(), pulled.data());
  }
  Array array(spec, rows);
  look_up("array_rows", array, batches, gradient.data(), pulled.data());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6) {
    const auto number = [&](int k) { return std::strtoull(argv[k], nullptr, 10); };
    const std::uint64_t rows = number(2), batch = number(4), steps = number(5);
    const TableSpec spec = spec_of(argv[1], number(3));
    if (paceline::pserver::sparse::check(spec).ok() && batch > 0 && rows >= 4 * batch && steps > 0) {
      measure(spec, rows, batch, static_cast<int>(steps));
      return 0;
    }
  }
  std::fprintf(
      stderr,
      "bench_sparse_table sgd|adagrad|adam|ftrl ROWS DIM BATCH STEPS, a batch being at most a quarter of "
      "the rows\n");
  return 2;
}
