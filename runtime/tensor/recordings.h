#pragma once

// What a queue keeps of the passes of one executable (Queue::repeat): for each kind of pass, which is what
// its operators were run with, the recordings of its parts. Of the last kMostKinds kinds; the one used
// longest ago makes room.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/tensor/device.h"

namespace paceline::tensor {

class Recordings {
 public:
  // With and without accumulation, of whole passes and of their halves, and as many of another scale.
  static constexpr std::size_t kMostKinds = 8;

  // Of a part of passes that `context` repeats. Null: nothing is kept. It stays where it is until the next
  // call.
  std::unique_ptr<Recording>& of(const RunContext& context, std::size_t part);
  void clear() { kinds_.clear(); }

 private:
  struct Kind {
    RunContext context;
    std::uint64_t used = 0;
    std::vector<std::unique_ptr<Recording>> parts;
  };
  Kind& kind(const RunContext& context);

  std::vector<Kind> kinds_;
  std::uint64_t uses_ = 0;
};

}  // namespace paceline::tensor
