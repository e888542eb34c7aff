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
  constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  EXPECT_EQ(usual_capacity(0, kUnlimited), 16 * kGiB);
  EXPECT_EQ(usual_capacity(4 * kGiB, kUnlimited), 16 * kGiB);
  EXPECT_EQ(usual_capacity(20 * kGiB, kUnlimited), 40 * kGiB);
  EXPECT_EQ(usual_capacity(2048 * kGiB, kUnlimited), 256 * kGiB);
  EXPECT_EQ(usual_capacity(kUnlimited, kUnlimited), 256 * kGiB);
  EXPECT_EQ(usual_capacity(20 * kGiB, 8 * kGiB), 4 * kGiB);
  EXPECT_GT(usual_capacity(), 0u);
}

TEST(Arena, SaysWhatIsLeftAndWhatHelps) {
  auto arena = Arena::create(2 * Arena::kAlignment);
  ASSERT_TRUE(arena.ok() && (*arena)->allocate(1).ok());
  EXPECT_EQ((*arena)->left(), Arena::kAlignment);
  const std::string said((*arena)->allocate(5000).status().message());
  EXPECT_THAT(said,
              ::testing::HasSubstr("of the 8192 bytes that this process may share 4096 are left, 5000"));
  EXPECT_THAT(said, ::testing::HasSubstr("more of them (ps)"));
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
  EXPECT_EQ(mapping->memory().size(), Arena::kAlignment) << "what there was when they met";
  EXPECT_EQ(mapping->memory()[3], std::byte{42});
  EXPECT_NE(0, ::ftruncate(fd.get(), 0));

  ASSERT_TRUE((*arena)->reserve(1).ok());
  mapping = Mapping::of(fd, Mapping::Access::kRead);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  auto later = (*arena)->allocate(3 * Arena::kAlignment), last = (*arena)->allocate(5);
  ASSERT_TRUE(later.ok() && last.ok());
  (*last)[4] = std::byte{7};
  EXPECT_EQ(mapping->memory().size(), std::size_t{1} << 20);
  EXPECT_EQ(mapping->memory()[(*arena)->offset_of(last->data()) + 4], std::byte{7});
  EXPECT_EQ(mapping->memory()[3], std::byte{42});
  EXPECT_TRUE((*arena)->contains(memory->data(), 8) && (*arena)->contains(later->data(), later->size()));
}

// Under `ulimit -v` a job takes what it needs, and not what it could.
TEST(Arena, TakesAddressSpaceAsItIsAllocated) {
  auto arena = Arena::create(std::size_t{1} << 60);
  ASSERT_TRUE(arena.ok()) << arena.status();
  EXPECT_EQ((*arena)->mapped(), 0u);
  EXPECT_TRUE((*arena)->allocate(10).ok());
  EXPECT_EQ((*arena)->mapped(), Arena::kAlignment);
  UniqueFd fd(::dup((*Arena::create(1 << 20))->fd()));
  const auto nothing = Mapping::of(fd, Mapping::Access::kRead);
  EXPECT_TRUE(nothing.ok() && nothing->memory().empty());
}

TEST(Mapping, RefusesMemoryThatCouldBeCut) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(0, ::ftruncate(fd.get(), 4096));
  EXPECT_EQ(Mapping::of(fd, Mapping::Access::kRead).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace paceline::transport
