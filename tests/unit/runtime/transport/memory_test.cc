#include "runtime/transport/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/transport/mapping.h"

namespace paceline::transport {
namespace {

TEST(Arena, HandsOutZeroedAlignedMemoryUntilItIsFull) {
  auto arena = Arena::create(3 * Arena::kAlignment);
  ASSERT_TRUE(arena.ok()) << arena.status();
  auto a = (*arena)->allocate(10), b = (*arena)->allocate(Arena::kAlignment + 1);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->size(), 10u);
  for (const auto& memory : {*a, *b}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % Arena::kAlignment, 0u);
    for (std::byte byte : memory) ASSERT_EQ(byte, std::byte{0});
  }
  EXPECT_EQ((*arena)->offset_of(b->data()), Arena::kAlignment);
  EXPECT_EQ((*arena)->allocate(1).status().code(), absl::StatusCode::kResourceExhausted);
}

// Twice the memory: more than can be touched. 256 members of one host map 256 such arenas.
TEST(Arena, IsAsLargeAsTheMachineAllows) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  EXPECT_EQ(usual_capacity(0, false), 16 * kGiB);
  EXPECT_EQ(usual_capacity(4 * kGiB, false), 16 * kGiB);
  EXPECT_EQ(usual_capacity(20 * kGiB, false), 40 * kGiB);
  EXPECT_EQ(usual_capacity(2048 * kGiB, false), 256 * kGiB);
  EXPECT_EQ(usual_capacity(~std::uint64_t{0}, false), 256 * kGiB);
  EXPECT_EQ(usual_capacity(2048 * kGiB, true), 16 * kGiB);
  EXPECT_GE(usual_capacity(), 16 * kGiB);
}

TEST(Arena, SaysWhatIsLeftAndWhatHelps) {
  auto arena = Arena::create(2 * Arena::kAlignment);
  ASSERT_TRUE(arena.ok() && (*arena)->allocate(1).ok());
  EXPECT_EQ((*arena)->left(), Arena::kAlignment);
  const std::string said((*arena)->allocate(5000).status().message());
  EXPECT_THAT(said, testing::HasSubstr("of the 8192 bytes that this process may share 4096 are left, 5000"));
  EXPECT_THAT(said, testing::HasSubstr("more of them (ps)"));
}

TEST(Arena, KnowsItsOwn) {
  auto arena = Arena::create(1 << 20);
  ASSERT_TRUE(arena.ok());
  auto memory = (*arena)->allocate(100);
  ASSERT_TRUE(memory.ok());
  int elsewhere = 0;
  EXPECT_TRUE((*arena)->contains(memory->data(), 100));
  EXPECT_TRUE((*arena)->contains(memory->data() + 50, 50));
  EXPECT_FALSE((*arena)->contains(&elsewhere, 4));
  EXPECT_FALSE((*arena)->contains(memory->data(), 1 << 20)) << "beyond what was handed out";
  EXPECT_FALSE((*arena)->contains(memory->data(), static_cast<std::size_t>(-1)));
}

TEST(Arena, PeersSeeItAndCannotCutIt) {
  auto arena = Arena::create(1 << 20);
  ASSERT_TRUE(arena.ok());
  auto memory = (*arena)->allocate(8);
  ASSERT_TRUE(memory.ok());
  (*memory)[3] = std::byte{42};
  UniqueFd fd(::dup((*arena)->fd()));
  auto mapping = Mapping::of(fd, Mapping::Access::kRead);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  EXPECT_EQ(mapping->memory().size(), std::size_t{1} << 20);
  EXPECT_EQ(mapping->memory()[3], std::byte{42});
  EXPECT_NE(0, ::ftruncate(fd.get(), 0));
}

TEST(Mapping, RefusesMemoryThatCouldBeCut) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(0, ::ftruncate(fd.get(), 4096));
  EXPECT_EQ(Mapping::of(fd, Mapping::Access::kRead).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace paceline::transport
