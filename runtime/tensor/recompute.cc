#include "runtime/tensor/recompute.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "runtime/tensor/peak_memory.h"

// A cut costs the tensors that cross it: those made before it and read behind it by the forward pass. So good
// cuts are where the graph is narrow, at the residual stream of a transformer or behind a pooling, and no
// operator needs to be known for that. For a bound of what a segment may hold for the backward pass, dynamic
// programming finds the cuts that cost least. Small segments keep much at their ends, large ones make much
// again at once: several bounds are tried, each schedule is written out and its peak computed, and of those
// near the smallest peak the one that repeats the least work is taken.
//
// n forward operations, b bounds: O(b n^2) at worst, for n of hundreds milliseconds.

namespace paceline::tensor {

namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// A peak counts as smallest within this share of it; what is won beyond is not worth the time.
constexpr std::size_t kNearShare = 8;

// Bounds are the whole divided by 2, 3, 4, ..., and by about a ninth more each time from 9 on.
constexpr std::size_t kMostSegments = 1024;

// Multiplications, as far as they count.
std::uint64_t work(const Schedule& schedule, const Operation& operation) {
  const auto dims = [&](TensorId id) -> const Dims& { return schedule.tensors[index(id)].dims; };
  const auto results = static_cast<std::uint64_t>(element_count(dims(operation.outputs[0])));
  switch (operation.kind) {
    case OperationKind::kLinear:
    case OperationKind::kLinearGelu:
    case OperationKind::kConv2d: {
      const Dims& weight = dims(operation.inputs[1]);
      return results * static_cast<std::uint64_t>(element_count(weight) / weight[0]);
    }
    case OperationKind::kCausalSelfAttention:
      return results * static_cast<std::uint64_t>(dims(operation.outputs[0])[1]);
    default:
      return results;
  }
}

// What is known of a schedule before any cut. Tensors that are one memory (kReshape) are kept or not kept
// together, as are all results of one operation: statistics cost less than making them again. But what a GELU
// was of (kLinearGelu) is as large as its result.
struct Study {
  explicit Study(const Schedule& schedule);

  std::size_t end;                    // forward operations before the loss
  std::vector<std::size_t> maker;     // by tensor: its forward operation; kNone: not made by one in the arena
  std::vector<std::size_t> root;      // by tensor: the first of its memory
  std::vector<std::size_t> lead;      // by tensor: the root of its maker's first result
  std::vector<std::size_t> read;      // by root: the last forward operation before the loss that reads it
  std::vector<std::size_t> crossing;  // by position: bytes made before it and read at or behind it
  std::vector<std::size_t> saved;     // by position: bytes made before it that the backward pass reads
};

Study::Study(const Schedule& schedule)
    : end(schedule.forward_count - 1),
      maker(schedule.tensors.size(), kNone),
      root(schedule.tensors.size()),
      lead(schedule.tensors.size()),
      read(schedule.tensors.size(), 0),
      crossing(end + 2, 0),
      saved(end + 2, 0) {
  const auto of_arena = [&](std::size_t t) { return schedule.tensors[t].place == Place::kArena; };
  for (std::size_t t = 0; t < root.size(); ++t) root[t] = lead[t] = t;
  std::vector<bool> wanted(schedule.tensors.size(), false);  // by root, of the backward pass
  for (std::size_t o = 0; o < schedule.operations.size(); ++o) {
    const Operation& operation = schedule.operations[o];
    for (const TensorId id : operation.inputs) {
      if (o < end) read[root[index(id)]] = o;
      if (o > end) wanted[root[index(id)]] = true;
    }
    if (o > end) continue;
    const std::size_t x = index(operation.inputs[0]), y = index(operation.outputs[0]);
    if (operation.kind == OperationKind::kReshape && of_arena(x)) root[y] = root[x];
    for (const TensorId id : operation.outputs) {
      lead[index(id)] = operation.kind == OperationKind::kLinearGelu ? root[index(id)] : root[y];
      if (of_arena(index(id))) maker[index(id)] = o;
    }
  }
  for (std::size_t t = 0; t < root.size(); ++t) {
    if (root[t] != t || maker[t] >= end) continue;
    const std::size_t bytes = tensor_bytes(schedule.tensors[t]);
    for (std::size_t p = maker[t] + 1; p <= read[t]; ++p) crossing[p] += bytes;
    if (wanted[t]) saved[maker[t] + 1] += bytes;
  }
  for (std::size_t p = 1; p <= end; ++p) saved[p] += saved[p - 1];
}

// Where segments begin, ascending, the first at 0: of those that hold at most `bound` bytes for the backward
// pass, or are one operation, the segments whose ends keep the least.
std::vector<std::size_t> cuts_for(const Study& study, std::size_t bound) {
  std::vector<std::size_t> kept(study.end + 1, kNone), from(study.end + 1, 0);
  kept[0] = 0;
  for (std::size_t to = 1; to <= study.end; ++to) {
    for (std::size_t begin = to; begin-- > 0;) {
      if (begin + 1 < to && study.saved[to] - study.saved[begin] > bound) break;
      const std::size_t all = kept[begin] + study.crossing[begin];
      if (all > kept[to]) continue;
      kept[to] = all;
      from[to] = begin;
    }
  }
  std::vector<std::size_t> cuts;
  for (std::size_t at = study.end; at > 0; at = from[at]) cuts.push_back(from[at]);
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

// Writes a schedule out for some cuts.
class Rewriter {
 public:
  Rewriter(const Schedule& given, const Study& study, const std::vector<std::size_t>& cuts)
      : given_(given), study_(study), cuts_(cuts), fresh_(given.tensors.size(), -1) {
    made_ = given;
    made_.operations.clear();
  }

  Schedule run() {
    const auto& operations = given_.operations;
    std::vector<std::size_t> place(operations.size());  // of each operation in what is made
    for (std::size_t o = 0; o < operations.size(); ++o) {
      if (o >= given_.forward_count) repeat_for(operations[o]);
      place[o] = made_.operations.size();
      made_.operations.push_back(operations[o]);
      if (o >= given_.forward_count) read_fresh(made_.operations.back());
    }
    for (ReadyRange& range : made_.ready) range.operation = place[range.operation];
    return std::move(made_);
  }
  std::uint64_t repeated_work() const { return repeated_work_; }

 private:
  std::size_t segment(std::size_t operation) const {
    return static_cast<std::size_t>(std::upper_bound(cuts_.begin(), cuts_.end(), operation) - cuts_.begin());
  }
  bool kept(TensorId id) const {
    const std::size_t lead = study_.lead[index(id)], made = study_.maker[lead];
    if (made == kNone || made >= cuts_.back()) return true;
    return segment(std::max(made, study_.read[lead])) > segment(made);
  }

  // All that `reader` reads and that is not there, and what that is made from, in the forward pass' order.
  void repeat_for(const Operation& reader) {
    std::vector<bool> asked(given_.forward_count, false);
    std::size_t top = 0;
    const auto ask = [&](const Operation& operation) {
      for (const TensorId id : operation.inputs) {
        if (kept(id) || fresh_[index(id)] >= 0) continue;
        asked[study_.maker[index(id)]] = true;
        top = std::max(top, study_.maker[index(id)] + 1);
      }
    };
    ask(reader);
    for (std::size_t o = top; o-- > 0;) {
      if (asked[o]) ask(given_.operations[o]);  // its operands' makers stand before it
    }
    for (std::size_t o = 0; o < top; ++o) {
      if (asked[o]) repeat(given_.operations[o]);
    }
  }

  void repeat(const Operation& operation) {
    Operation again = operation;
    read_fresh(again);
    for (TensorId& id : again.outputs) {
      fresh_[index(id)] = static_cast<TensorId>(made_.tensors.size());
      made_.tensors.push_back(given_.tensors[index(id)]);
      id = fresh_[index(id)];
    }
    made_.operations.push_back(std::move(again));
    repeated_work_ += work(given_, operation);
  }

  void read_fresh(Operation& operation) const {
    for (TensorId& id : operation.inputs) {
      if (!kept(id)) id = fresh_[index(id)];
    }
  }

  const Schedule& given_;
  const Study& study_;
  const std::vector<std::size_t>& cuts_;
  std::vector<TensorId> fresh_;  // by tensor of `given_`: its repeated one; -1: not yet, or never
  Schedule made_;
  std::uint64_t repeated_work_ = 0;
};

struct Candidate {
  std::vector<std::size_t> cuts;
  std::size_t peak = 0;
  std::uint64_t work = 0;
};

}  // namespace

Schedule recompute_activations(Schedule schedule) {
  if (schedule.forward_count < 2 || schedule.operations.size() == schedule.forward_count) return schedule;
  const Study study(schedule);
  std::vector<Candidate> candidates{{{0}, peak_bytes(schedule), 0}};  // one segment: nothing is repeated
  for (std::size_t parts = 2; parts <= std::min(study.end, kMostSegments); parts += 1 + parts / 9) {
    Candidate candidate{cuts_for(study, study.saved[study.end] / parts), 0, 0};
    if (candidate.cuts == candidates.back().cuts) continue;
    Rewriter rewriter(schedule, study, candidate.cuts);
    candidate.peak = peak_bytes(rewriter.run());
    candidate.work = rewriter.repeated_work();
    candidates.push_back(std::move(candidate));
  }
  std::size_t smallest = candidates[0].peak;
  for (const Candidate& candidate : candidates) smallest = std::min(smallest, candidate.peak);
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.peak > smallest + smallest / kNearShare) continue;
    if (best == nullptr || candidate.work < best->work ||
        (candidate.work == best->work && candidate.peak < best->peak)) {
      best = &candidate;
    }
  }
  if (best->work == 0) return schedule;
  return Rewriter(schedule, study, best->cuts).run();
}

}  // namespace paceline::tensor
