#include "base/bytes.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(BytesTest, WritesLittleEndian) {
  ByteWriter writer;
  writer.u16(0x1234);
  writer.u32(0xdeadbeef);
  const std::vector<std::byte> expected = {std::byte{0x34}, std::byte{0x12}, std::byte{0xef},
                                           std::byte{0xbe}, std::byte{0xad}, std::byte{0xde}};
  EXPECT_EQ(writer.data(), expected);
}

TEST(BytesTest, ReadsWhatWasWritten) {
  ByteWriter writer;
  writer.u8(7);
  writer.u16(65535);
  writer.u32(1u << 31);
  writer.u64(0x0123456789abcdefULL);
  writer.text("hello");
  ByteReader reader(writer.data());
  EXPECT_EQ(reader.u8(), 7);
  EXPECT_EQ(reader.u16(), 65535);
  EXPECT_EQ(reader.u32(), 1u << 31);
  EXPECT_EQ(reader.u64(), 0x0123456789abcdefULL);
  EXPECT_EQ(reader.text(5), "hello");
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(BytesTest, EveryTruncationIsNoticed) {
  ByteWriter writer;
  writer.u32(5);
  writer.text("abc");
  for (std::size_t size = 0; size < writer.data().size(); ++size) {
    ByteReader reader(std::span(writer.data()).first(size));
    reader.u32();
    reader.text(3);
    EXPECT_FALSE(reader.ok()) << size;
    EXPECT_EQ(reader.u64(), 0u) << "a reader that failed reads zeros";
  }
}

TEST(BytesTest, TextLongerThanItsLimitIsRefused) {
  ByteWriter writer;
  writer.text("abcd");
  ByteReader reader(writer.data());
  EXPECT_EQ(reader.text(3), "");
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace paceline
