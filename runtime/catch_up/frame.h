#pragma once

// Frames travel from a member of a view to a newcomer that gets the state while the others train
// (docs/protocol.md, "How a newcomer catches up"). Pure.
//
// Each source gives a part of the state, elements [begin, end) of every vector: of the weights and of the
// optimizer's state. After a step it sends that step's gradient for those elements that it gave before, and
// then some elements more, as they are after the step. So the newcomer takes the same steps with what it has,
// and what it has is always of one step. A frame is kHeaderBytes, little-endian, and then floats:
//   kGradient  `count` floats: the summed gradient of `step`, of elements [begin, begin + count)
//   kState     for each vector `count` floats, weights first, as they are after `step`
//   kEnd       nothing: the view ended after `step`, and the source has sent all that it is to send
//   kRefusal   nothing: this source can't give its part

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"

namespace paceline::catch_up {

enum class FrameKind : std::uint32_t { kGradient = 1, kState = 2, kEnd = 3, kRefusal = 4 };

// One step of the job, as every member of the view took it.
struct Update {
  Step step = 0;                     // applied, this one included
  std::int64_t optimizer_steps = 0;  // likewise, as the optimizer counts them
  double learning_rate = 0;
  float factor = 1;  // what the gradient counts: less than 1 where it was clipped
  bool operator==(const Update&) const = default;
};

struct Frame {
  FrameKind kind = FrameKind::kEnd;
  Update update;
  std::uint64_t begin = 0, count = 0;  // elements
  bool operator==(const Frame&) const = default;
};

// How long the two ends look for each other.
inline constexpr Duration kMeetLimit = std::chrono::seconds(30);

inline constexpr std::size_t kHeaderBytes = 64;
// A header is followed by so many floats at most.
inline constexpr std::size_t kMostFloats = std::size_t{64} << 10;

// How many floats follow; `vectors`: the weights and the optimizer's.
std::size_t floats_behind(const Frame& frame, std::size_t vectors);

std::array<std::byte, kHeaderBytes> encode(const Frame& frame);
// INVALID_ARGUMENT: no frame, or one with more than kMostFloats.
absl::StatusOr<Frame> decode(std::span<const std::byte, kHeaderBytes> bytes, std::size_t vectors);

// Elements [begin, end).
struct Slice {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};
// The part that source `index` of `sources` gives. They are disjoint, together the whole, and end at
// multiples of 16 elements, but for the last.
Slice slice_of(std::size_t elements, std::size_t sources, std::size_t index);

}  // namespace paceline::catch_up
