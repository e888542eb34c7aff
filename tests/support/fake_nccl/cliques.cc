#include "tests/support/fake_nccl/cliques.h"

#include <algorithm>
#include <cstring>

#include "runtime/collective/reduce.h"

namespace paceline::fake_nccl {

namespace {

DType our_type(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
      return DType::kF64;
    case ncclBfloat16:
      return DType::kBF16;
    case ncclFloat16:
      return DType::kF16;
    case ncclInt32:
      return DType::kI32;
    case ncclInt64:
      return DType::kI64;
    default:
      return DType::kF32;
  }
}

collective::ReduceOp our_op(ncclRedOp_t op) {
  return op == ncclMin   ? collective::ReduceOp::kMin
         : op == ncclMax ? collective::ReduceOp::kMax
                         : collective::ReduceOp::kSum;
}

bool same_call(const Part& a, const Part& b) {
  return a.what == b.what && a.count == b.count && a.type == b.type && a.op == b.op && a.root == b.root;
}

// All ranks' inputs, from `offset` bytes on.
std::vector<std::byte> fold(const std::vector<Part>& ranks, std::size_t offset) {
  std::vector<std::byte> result(ranks[0].count * element_bytes(ranks[0].type));
  std::vector<const std::byte*> inputs;
  for (const Part& part : ranks) inputs.push_back(part.send + offset);
  std::byte* const output[] = {result.data()};
  const int divisor = ranks[0].op == ncclAvg ? static_cast<int>(ranks.size()) : 1;
  collective::reduce({.outputs = output,
                      .inputs = inputs,
                      .count = ranks[0].count,
                      .dtype = our_type(ranks[0].type),
                      .op = our_op(ranks[0].op),
                      .divisor = divisor},
                     SimdLevel::kPortable);
  return result;
}

// `ranks`: the same part of the same collective, of each rank.
void carry_out(const std::vector<Part>& ranks) {
  const Part& call = ranks[0];
  const std::size_t bytes = call.count * element_bytes(call.type);
  switch (call.what) {
    case What::kAllReduce: {
      const std::vector<std::byte> result = fold(ranks, 0);
      for (const Part& part : ranks) std::memcpy(part.receive, result.data(), bytes);
      return;
    }
    case What::kReduce:
      std::memcpy(ranks[static_cast<std::size_t>(call.root)].receive, fold(ranks, 0).data(), bytes);
      return;
    case What::kBroadcast: {
      const std::byte* const from = ranks[static_cast<std::size_t>(call.root)].send;
      for (const Part& part : ranks) std::memmove(part.receive, from, bytes);
      return;
    }
    case What::kAllGather:
      for (const Part& part : ranks) {
        for (std::size_t r = 0; r < ranks.size(); ++r)
          std::memmove(part.receive + r * bytes, ranks[r].send, bytes);
      }
      return;
    case What::kReduceScatter: {
      // All before any is written: blocks lie in the inputs.
      std::vector<std::vector<std::byte>> results;
      for (std::size_t r = 0; r < ranks.size(); ++r) results.push_back(fold(ranks, r * bytes));
      for (std::size_t r = 0; r < ranks.size(); ++r) std::memcpy(ranks[r].receive, results[r].data(), bytes);
      return;
    }
  }
}

}  // namespace

std::size_t element_bytes(ncclDataType_t type) {
  return dtype_bytes(our_type(type));
}

bool Clique::complete() const {
  return std::ranges::find(devices, kNobody) == devices.end();
}

bool Clique::all_ended() const {
  return std::ranges::all_of(ended, [](bool e) { return e; });
}

bool Clique::arrive(int rank, std::size_t index, const std::vector<Part>& parts, std::string& problem) {
  Collective& collective = collectives[index];
  if (collective.done) return true;
  collective.ranks[rank] = parts;
  if (static_cast<int>(collective.ranks.size()) < size()) return false;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<Part> ranks;
    for (const auto& [r, theirs] : collective.ranks) {
      if (theirs.size() != parts.size() || !same_call(theirs[p], parts[p])) {
        problem = "ranks " + std::to_string(rank) + " and " + std::to_string(r) + " make different calls";
        return false;
      }
      ranks.push_back(theirs[p]);
    }
    carry_out(ranks);
  }
  collective.done = true;
  return true;
}

}  // namespace paceline::fake_nccl
