#pragma once

// The ranks that met by the same ids, and their collectives. Not thread-safe: the library's lock is held.

#include <nccl.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_nccl/fake_nccl.h"

namespace paceline::fake_nccl {

enum class What { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter };

// One rank's part in one collective.
struct Part {
  What what = What::kAllReduce;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
};
std::size_t element_bytes(ncclDataType_t type);

struct Clique {
  explicit Clique(int size) : devices(static_cast<std::size_t>(size), kNobody), ended(devices.size()) {}
  static constexpr int kNobody = -1;

  struct Collective {
    std::map<int, std::vector<Part>> ranks;  // those that have come to it in their streams
    bool done = false;
  };
  std::vector<int> devices;  // by rank; kNobody: it has not come
  std::vector<bool> ended;   // finalized, or gone
  std::map<std::size_t, Collective> collectives;
  std::shared_ptr<Clique> child;  // that it is shrunk to, without these
  std::vector<int> excluded;

  int size() const { return static_cast<int>(devices.size()); }
  bool complete() const;
  bool all_ended() const;
  // Rank `rank` has come to collective `index`; true when it is done. `problem`: how ranks differ.
  bool arrive(int rank, std::size_t index, const std::vector<Part>& parts, std::string& problem);
};

}  // namespace paceline::fake_nccl
