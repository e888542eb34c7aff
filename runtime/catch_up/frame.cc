#include "runtime/catch_up/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/status.h"

namespace paceline::catch_up {

namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian, as the machines are");

constexpr std::uint32_t kMagic = 0x55434c50;  // "PLCU"

struct Wire {
  std::uint32_t magic = kMagic;
  std::uint32_t kind = 0;
  std::int64_t step = 0, optimizer_steps = 0;
  double learning_rate = 0;
  std::uint64_t begin = 0, count = 0;
  float factor = 1;
  std::array<std::uint32_t, 3> reserved{};
};
static_assert(sizeof(Wire) == kHeaderBytes);

}  // namespace

std::size_t floats_behind(const Frame& frame, std::size_t vectors) {
  switch (frame.kind) {
    case FrameKind::kGradient:
      return frame.count;
    case FrameKind::kState:
      return frame.count * vectors;
    case FrameKind::kEnd:
    case FrameKind::kRefusal:
      return 0;
  }
  return 0;
}

std::array<std::byte, kHeaderBytes> encode(const Frame& frame) {
  Wire wire;
  wire.kind = static_cast<std::uint32_t>(frame.kind);
  wire.step = frame.update.step;
  wire.optimizer_steps = frame.update.optimizer_steps;
  wire.learning_rate = frame.update.learning_rate;
  wire.factor = frame.update.factor;
  wire.begin = frame.begin;
  wire.count = frame.count;
  std::array<std::byte, kHeaderBytes> bytes;
  std::memcpy(bytes.data(), &wire, sizeof(wire));
  return bytes;
}

absl::StatusOr<Frame> decode(std::span<const std::byte, kHeaderBytes> bytes, std::size_t vectors) {
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof(wire));
  if (wire.magic != kMagic) return absl::InvalidArgumentError("not a frame of a catch-up");
  if (wire.kind < static_cast<std::uint32_t>(FrameKind::kGradient) ||
      wire.kind > static_cast<std::uint32_t>(FrameKind::kRefusal))
    return absl::InvalidArgumentError(str_cat("a frame of kind ", wire.kind));
  if (wire.step < 0 || wire.optimizer_steps < 0 || wire.count > kMostFloats)
    return absl::InvalidArgumentError(
        str_cat("a frame of step ", wire.step, " with ", wire.count, " elements"));
  const Frame frame{static_cast<FrameKind>(wire.kind),
                    {wire.step, wire.optimizer_steps, wire.learning_rate, wire.factor},
                    wire.begin,
                    wire.count};
  if (floats_behind(frame, vectors) > kMostFloats)
    return absl::InvalidArgumentError(str_cat("a frame with ", floats_behind(frame, vectors), " floats"));
  return frame;
}

Slice slice_of(std::size_t elements, std::size_t sources, std::size_t index) {
  constexpr std::size_t kUnit = 16;  // floats of a cache line
  const std::size_t units = (elements + kUnit - 1) / kUnit;
  const auto begin = [&](std::size_t i) { return std::min(elements, units * i / sources * kUnit); };
  return {begin(index), begin(index + 1)};
}

}  // namespace paceline::catch_up
