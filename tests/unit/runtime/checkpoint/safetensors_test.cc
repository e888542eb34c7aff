#include "runtime/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/text.h"

namespace paceline::checkpoint {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A file of this header and so many bytes of data.
std::string file_of(std::string_view json, std::size_t data_bytes) {
  ByteWriter length;
  length.u64(json.size());
  std::string file(reinterpret_cast<const char*>(length.data().data()), 8);
  return file.append(json).append(data_bytes, 'x');
}

std::string file_of(std::span<const TensorView> tensors, const Metadata& metadata) {
  std::string file = encode_header(tensors, metadata).value();
  for (const auto& t : tensors) file.append(reinterpret_cast<const char*>(t.data.data()), t.data.size());
  return file;
}

absl::Status parse(std::string_view file) {
  return parse_header(as_bytes(file), file.size()).status();
}

constexpr std::array<float, 3> kFloats{1.0f, -2.5f, 0.0f};
constexpr std::array<std::uint16_t, 2> kHalves{0x3f80, 0xc020};

std::vector<TensorView> sample_tensors() {
  return {tensor_view<float>("layer.weight", DType::kF32, {1, 3}, kFloats),
          tensor_view<std::uint16_t>("layer.bias", DType::kBF16, {2}, kHalves),
          tensor_view<float>("scalar", DType::kF32, {}, std::span(kFloats).first(1)),
          tensor_view<float>("empty", DType::kF32, {0, 4}, std::span<const float>())};
}

// What the format's own documentation says, byte by byte.
TEST(SafetensorsTest, GoldenFile) {
  const std::vector<TensorView> tensors = {sample_tensors()[0], sample_tensors()[1]};
  const std::string json = R"({"__metadata__":{"format":"pt"},)"
                           R"("layer.bias":{"data_offsets":[12,16],"dtype":"BF16","shape":[2]},)"
                           R"("layer.weight":{"data_offsets":[0,12],"dtype":"F32","shape":[1,3]}})";
  std::string expected{static_cast<char>((json.size() + 7) / 8 * 8), 0, 0, 0, 0, 0, 0, 0};
  expected += json;
  expected.append(8 - (expected.size() - 1) % 8 - 1, ' ');
  expected += std::string("\x00\x00\x80\x3f\x00\x00\x20\xc0\x00\x00\x00\x00\x80\x3f\x20\xc0", 16);
  EXPECT_EQ(file_of(tensors, {{"format", "pt"}}), expected);
}

TEST(SafetensorsTest, RoundTrip) {
  const auto tensors = sample_tensors();
  const std::string file = file_of(tensors, {{"a", "1"}, {"b", "\xc3\xa4"}});
  const auto header = parse_header(as_bytes(file), file.size());
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->data_begin % 8, 0u);
  EXPECT_EQ(header->metadata.at("b"), "\xc3\xa4");
  ASSERT_EQ(header->tensors.size(), 4u);
  for (const TensorEntry& entry : header->tensors) {
    const auto original =
        std::find_if(tensors.begin(), tensors.end(), [&](auto& t) { return t.name == entry.name; });
    ASSERT_NE(original, tensors.end());
    EXPECT_EQ(entry.dtype, original->dtype);
    EXPECT_EQ(entry.dims, original->dims);
    const std::string data = file.substr(header->data_begin + entry.begin, entry.end - entry.begin);
    EXPECT_TRUE(std::ranges::equal(as_bytes(data), original->data)) << entry.name;
  }
  EXPECT_TRUE(parse(file_of(std::vector<TensorView>{}, {})).ok());
}

TEST(SafetensorsTest, ReadsAnyOrderAndPadding) {
  EXPECT_TRUE(parse(file_of(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                            R"("a":{"shape":[1],"dtype":"F32","data_offsets":[0,4]}}     )",
                            8))
                  .ok());
}

TEST(SafetensorsTest, WritingRefuses) {
  const auto refused = [](std::vector<TensorView> tensors, const Metadata& metadata = {}) {
    return encode_header(tensors, metadata).status().code() == absl::StatusCode::kInvalidArgument;
  };
  const auto good = sample_tensors();
  EXPECT_FALSE(refused(good));
  EXPECT_TRUE(refused({good[0], good[0]})) << "a name twice";
  auto bad = good[0];
  bad.name = "__metadata__";
  EXPECT_TRUE(refused({bad}));
  bad.name = "\xff";
  EXPECT_TRUE(refused({bad})) << "not UTF-8";
  bad = good[0];
  bad.dims = {4};
  EXPECT_TRUE(refused({bad}));
  bad.dims = {-1, -3};
  EXPECT_TRUE(refused({bad}));
  bad.dims = {std::int64_t{1} << 62, 4, 3};
  EXPECT_TRUE(refused({bad})) << "overflow";
  EXPECT_TRUE(refused({good[0]}, {{"x", "\xff"}}));
}

TEST(SafetensorsTest, ReadingRefuses) {
  const auto tensor = [](std::string_view shape, std::string_view offsets, std::string_view dtype = "F32") {
    return str_cat(R"({"t":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets, "}}");
  };
  const std::string two =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":)";
  const std::pair<std::string, std::string> cases[] = {
      {"", "begins with 8 bytes, this one has 0"},
      {"1234567", "this one has 7"},
      {std::string(8, '\xff'), "a header of 18446744073709551615 bytes"},
      {file_of("{}", 0).substr(0, 9), "a header of 2 bytes"},
      {file_of("", 0), "not a JSON object"},
      {file_of("[]", 0), "not a JSON object"},
      {file_of("{", 0), "not a JSON object"},
      {file_of("{} x", 0), "not a JSON object"},
      {file_of(std::string(10000, '['), 0), "nested too deeply"},
      {file_of(two + "[4,8]}" + R"(,"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 12),
       "'a' comes twice"},
      {file_of(two + "[2,6]}}", 6), "inside another tensor"},
      {file_of(two + "[0,4]}}", 4), "inside another tensor"},
      {file_of(two + "[5,9]}}", 9), "after a hole"},
      {file_of(two + "[4,8]}}", 9), "end at byte 8 of the data, the file has 9"},
      {file_of(two + "[4,8]}}", 7), "the file has 7"},
      {file_of("{}", 1), "end at byte 0"},
      {file_of(tensor("[2]", "[0,4]"), 4), "don't have the length"},
      {file_of(tensor("[1]", "[4,0]"), 4), "don't have the length"},
      {file_of(tensor("[1]", "[-4,0]"), 4), "whole numbers"},
      {file_of(tensor("[1]", "[0,4.0]"), 4), "whole numbers"},
      {file_of(tensor("[1]", "[0]"), 4), "data_offsets must be two"},
      {file_of(tensor("[-1]", "[0,4]"), 4), "shape must be whole numbers"},
      {file_of(tensor("[18446744073709551615]", "[0,4]"), 4), "shape must be whole numbers"},
      {file_of(tensor("[4611686018427387904,4]", "[0,0]"), 0), "don't have the length"},
      {file_of(tensor("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), "at most 16"},
      {file_of(tensor("1", "[0,4]"), 4), "shape must be a list"},
      {file_of(R"({"t":{"dtype":"F32","shape":[1]}})", 4), "must have dtype, shape and data_offsets"},
      {file_of(R"({"t":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4), "dtype must be a text"},
      {file_of(R"({"t":4})", 4), "must have dtype"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "__metadata__ must be an object of texts"},
      {file_of(R"({"__metadata__":[]})", 0), "__metadata__ must be"},
  };
  for (const auto& [file, message] : cases) {
    const absl::Status status = parse(file);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  const absl::Status status = parse(file_of(tensor("[1]", "[0,1]", "F8_E4M3"), 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("F8_E4M3"));
}

TEST(SafetensorsTest, MutatedFilesNeverCrash) {
  const std::string good = file_of(sample_tensors(), {{"a", "b"}});
  int accepted = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Rng rng(seed, 1);
    std::string file = good;
    for (std::uint64_t changes = 1 + rng.below(3); changes > 0 && !file.empty(); --changes) {
      const std::size_t at = rng.below(file.size());
      switch (rng.below(4)) {
        case 0:
          file[at] = static_cast<char>(rng.next_u64());
          break;
        case 1:
          file.erase(at, 1 + rng.below(6));
          break;
        case 2:
          file.insert(at, 1, "0123456789[]{},:\""[rng.below(17)]);
          break;
        default:
          file[at] = static_cast<char>('0' + rng.below(10));
      }
    }
    const auto header = parse_header(as_bytes(file), file.size());
    if (!header.ok()) continue;
    ++accepted;
    for (const TensorEntry& t : header->tensors)
      EXPECT_LE(header->data_begin + t.end, file.size()) << "seed " << seed;
  }
  EXPECT_LT(accepted, 4000);
}

TEST(SafetensorsTest, AHeaderIsTheSameBeforeItsBytesAreThere) {
  const std::vector<std::int64_t> ids(6);
  const std::vector<float> rows(18);
  const std::vector<TensorView> views = {tensor_view<std::int64_t>("ids/0", DType::kI64, {6}, ids),
                                         tensor_view<float>("rows/0", DType::kF32, {6, 3}, rows)};
  const std::vector<TensorShape> shapes = {{"ids/0", DType::kI64, {6}}, {"rows/0", DType::kF32, {6, 3}}};
  EXPECT_EQ(encode_header_of(shapes, {{"rows", "6"}}).value(), encode_header(views, {{"rows", "6"}}).value());
  for (const std::vector<TensorShape>& wrong :
       {std::vector<TensorShape>{{"a", DType::kF32, {-1}}},
        std::vector<TensorShape>{{"a", DType::kF32, {1}}, {"a"}},
        std::vector<TensorShape>{{"__metadata__", DType::kF32, {1}}}}) {
    EXPECT_EQ(encode_header_of(wrong, {}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace paceline::checkpoint
