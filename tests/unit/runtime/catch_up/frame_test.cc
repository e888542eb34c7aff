#include "runtime/catch_up/frame.h"

#include <gtest/gtest.h>

#include "tests/support/assert_ok.h"

namespace paceline::catch_up {
namespace {

constexpr std::size_t kVectors = 3;

TEST(Frame, IsReadAsItWasWritten) {
  for (const FrameKind kind :
       {FrameKind::kGradient, FrameKind::kState, FrameKind::kEnd, FrameKind::kRefusal}) {
    const Frame frame{kind, {41, 17, 0.25, 0.5F}, 1024, 640};
    PL_ASSERT_OK(read, decode(encode(frame), kVectors));
    EXPECT_EQ(*read, frame);
  }
}

TEST(Frame, HasTheFloatsOfItsKind) {
  EXPECT_EQ(floats_behind({FrameKind::kGradient, {}, 0, 10}, kVectors), 10);
  EXPECT_EQ(floats_behind({FrameKind::kState, {}, 0, 10}, kVectors), 30);
  EXPECT_EQ(floats_behind({FrameKind::kEnd, {}, 0, 10}, kVectors), 0);
  EXPECT_EQ(floats_behind({FrameKind::kRefusal, {}, 0, 10}, kVectors), 0);
}

TEST(Frame, BytesThatAreNoFrameAreRefused) {
  const auto decoded = [](auto spoil) {
    auto bytes = encode({FrameKind::kState, {1, 1, 0.1, 1}, 0, 16});
    spoil(bytes);
    return decode(bytes, kVectors).status().code();
  };
  EXPECT_EQ(decoded([](auto&) {}), absl::StatusCode::kOk);
  EXPECT_EQ(decoded([](auto& bytes) { bytes[0] = std::byte{0}; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decoded([](auto& bytes) { bytes[4] = std::byte{9}; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decoded([](auto& bytes) { bytes[15] = std::byte{0x80}; }), absl::StatusCode::kInvalidArgument);
  const Frame gradient{FrameKind::kGradient, {1, 1, 0.1, 1}, 0, kMostFloats};
  EXPECT_TRUE(decode(encode(gradient), kVectors).ok());
  const Frame state{FrameKind::kState, {1, 1, 0.1, 1}, 0, kMostFloats};
  EXPECT_EQ(decode(encode(state), kVectors).status().code(), absl::StatusCode::kInvalidArgument);
  const Frame longer{FrameKind::kGradient, {1, 1, 0.1, 1}, 0, kMostFloats + 1};
  EXPECT_EQ(decode(encode(longer), kVectors).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Slice, OfAllSourcesAreTheWhole) {
  for (const std::size_t elements : {0U, 1U, 16U, 17U, 1000U, 100003U}) {
    for (const std::size_t sources : {1U, 2U, 3U, 16U}) {
      std::size_t end = 0;
      for (std::size_t i = 0; i < sources; ++i) {
        const Slice slice = slice_of(elements, sources, i);
        EXPECT_EQ(slice.begin, end);
        EXPECT_GE(slice.end, slice.begin);
        EXPECT_TRUE(slice.end % 16 == 0 || slice.end == elements);
        end = slice.end;
      }
      EXPECT_EQ(end, elements);
    }
  }
}

}  // namespace
}  // namespace paceline::catch_up
