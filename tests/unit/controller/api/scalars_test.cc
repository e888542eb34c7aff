#include "controller/api/scalars.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"

namespace paceline::api {
namespace {

constexpr ScalarError kGood = ScalarError::kNone, kForm = ScalarError::kWrongForm,
                      kLarge = ScalarError::kTooLarge;

template <typename Value>
struct ScalarCase {
  const char* text;
  ScalarError error;
  Value value;
};

template <typename Value, std::size_t kCount>
void expect_parsed(ScalarError (*parse)(std::string_view, Value&), const ScalarCase<Value> (&cases)[kCount]) {
  for (const auto& c : cases) {
    Value value = 0;
    EXPECT_EQ(parse(c.text, value), c.error) << c.text;
    if (c.error == kGood) {
      EXPECT_EQ(value, c.value) << c.text;
    }
  }
}

TEST(Scalars, Integers) {
  const ScalarCase<std::int64_t> kCases[] = {
      {"0", kGood, 0},
      {"42", kGood, 42},
      {"-7", kGood, -7},
      {"+7", kGood, 7},
      {"9223372036854775807", kGood, std::numeric_limits<std::int64_t>::max()},
      {"-9223372036854775808", kGood, std::numeric_limits<std::int64_t>::min()},
      {"9223372036854775808", kLarge, 0},
      {"99999999999999999999999", kLarge, 0},
      {"", kForm, 0},
      {"-", kForm, 0},
      {"+-1", kForm, 0},
      {"007", kForm, 0},
      {"0x10", kForm, 0},
      {"1.0", kForm, 0},
      {"1e3", kForm, 0},
      {"1_000", kForm, 0},
      {" 1", kForm, 0},
      {"1 ", kForm, 0}};
  expect_parsed(parse_integer, kCases);
}

TEST(Scalars, Numbers) {
  const ScalarCase<double> kCases[] = {
      {"0", kGood, 0},       {"0.1", kGood, 0.1},   {"-2.5", kGood, -2.5}, {"+1", kGood, 1},
      {"1e-3", kGood, 1e-3}, {".5", kGood, 0.5},    {"5.", kGood, 5},      {"1E6", kGood, 1e6},
      {"1e400", kLarge, 0},  {"1e-400", kLarge, 0}, {"nan", kForm, 0},     {".nan", kForm, 0},
      {"inf", kForm, 0},     {".inf", kForm, 0},    {"-.inf", kForm, 0},   {"infinity", kForm, 0},
      {"0x1p3", kForm, 0},   {"", kForm, 0},        {".", kForm, 0},       {"1e", kForm, 0},
      {"1,5", kForm, 0},     {"1.2.3", kForm, 0},   {"e5", kForm, 0},      {"1 000", kForm, 0}};
  expect_parsed(parse_number, kCases);
}

TEST(Scalars, Bytes) {
  const ScalarCase<std::int64_t> kCases[] = {{"1048576", kGood, 1 << 20},
                                             {"1Mi", kGood, 1 << 20},
                                             {"512Ki", kGood, 512 << 10},
                                             {"2Gi", kGood, 2LL << 30},
                                             {"1k", kGood, 1000},
                                             {"3M", kGood, 3'000'000},
                                             {"1G", kGood, 1'000'000'000},
                                             {"-1Ki", kGood, -1024},
                                             {"1MB", kForm, 0},
                                             {"1 Mi", kForm, 0},
                                             {"Mi", kForm, 0},
                                             {"1.5Mi", kForm, 0},
                                             {"1K", kForm, 0},
                                             {"1m", kForm, 0},
                                             {"8589934592Gi", kLarge, 0},
                                             {"99999999999999999999", kLarge, 0}};
  expect_parsed(parse_bytes, kCases);
}

TEST(Scalars, Cores) {
  const ScalarCase<double> kCases[] = {
      {"500m", kGood, 0.5}, {"1.5", kGood, 1.5}, {"two", kForm, 0}, {"m", kForm, 0}};
  expect_parsed(parse_cores, kCases);
}

TEST(Scalars, ShortestNumbersReadBack) {
  Rng rng(11, 0);
  for (int round = 0; round < 2000; ++round) {
    const double value = (rng.uniform() - 0.5) * static_cast<double>(1ULL << rng.below(60)) /
                         static_cast<double>(1ULL << rng.below(60));
    double read = 0;
    ASSERT_EQ(parse_number(format_number(value), read), kGood) << format_number(value);
    ASSERT_EQ(read, value) << "seed 11";
  }
}

TEST(Scalars, TextRules) {
  const struct {
    TextKind kind;
    const char* text;
    bool good;
  } kCases[] = {{TextKind::kJobName, "fashion-allreduce", true},
                {TextKind::kJobName, "a", true},
                {TextKind::kJobName, "2a", false},
                {TextKind::kJobName, "-a", false},
                {TextKind::kJobName, "a-", false},
                {TextKind::kJobName, "a.b", false},
                {TextKind::kJobName, "A", false},
                {TextKind::kJobName, "", false},
                {TextKind::kNamespace, "2a", true},
                {TextKind::kEnvName, "OMP_NUM_THREADS", true},
                {TextKind::kEnvName, "_x", true},
                {TextKind::kEnvName, "1x", false},
                {TextKind::kEnvName, "a=b", false},
                {TextKind::kEnvName, "PACELINE_X", false},
                {TextKind::kEnvName, "PACELINE_DEVICE", true},
                {TextKind::kEnvName, "PACELINE_DEVICES", false},
                {TextKind::kEnvName, "PACELINE_CUDA_GRAPHS", true},
                {TextKind::kEnvName, "PACELINE_LOG_LEVEL", false},  // the controller's
                {TextKind::kCustomName, "two-moons", true},
                {TextKind::kCustomName, "a b", false},
                {TextKind::kPath, "data/x.gz", true},
                {TextKind::kPath, "", false},
                {TextKind::kPath, "a\nb", false},
                {TextKind::kImage, "ghcr.io/x/y:1", true},
                {TextKind::kImage, "x y", false},
                {TextKind::kAny, "", true}};
  for (const auto& c : kCases) EXPECT_EQ(text_rule_broken(c.kind, c.text).empty(), c.good) << c.text;
  EXPECT_FALSE(text_rule_broken(TextKind::kAny, std::string_view("a\0b", 3)).empty());
  EXPECT_FALSE(text_rule_broken(TextKind::kJobName, std::string(51, 'a')).empty());
  EXPECT_TRUE(text_rule_broken(TextKind::kJobName, std::string(50, 'a')).empty());
}

TEST(Scalars, Labels) {
  for (const char* key : {"app", "paceline.dev/job-name", "a_b.c-d"})
    EXPECT_EQ(label_key_rule_broken(key), "") << key;
  for (const char* key : {"", "/a", "a/", "a b", "A/b", "-a", "a/b/c"})
    EXPECT_NE(label_key_rule_broken(key), "") << key;
  EXPECT_EQ(label_value_rule_broken(""), "");
  EXPECT_NE(label_value_rule_broken("a b"), "");
}

TEST(Scalars, QuotesShowWhatATerminalWouldObey) {
  EXPECT_EQ(quote("plain"), "\"plain\"");
  EXPECT_EQ(quote("a\"b\\"), "\"a\\\"b\\\\\"");
  EXPECT_EQ(quote("\x1b[31m"), "\"\\x1b[31m\"");
  EXPECT_EQ(quote("\xc2\x9b"), "\"\\xc2\\x9b\"");
  EXPECT_EQ(quote("\xe2\x80\xae"), "\"\\xe2\\x80\\xae\"");  // right to left
  EXPECT_EQ(quote("a\tb\nc"), "\"a\\x09b\\nc\"");
  EXPECT_EQ(quote("\xff"), "\"\\xff\"");
  EXPECT_EQ(quote("é"), "\"é\"");
  EXPECT_LE(quote(std::string(1000, 'x')).size(), 70u);
}

TEST(Scalars, DnsLabelThatWasMeant) {
  EXPECT_EQ(as_dns_label("Fashion_Cnn", 50), "fashion-cnn");
  EXPECT_EQ(as_dns_label("  2 moons!", 50), "moons");
  EXPECT_EQ(as_dns_label("___", 50), "");
  EXPECT_EQ(as_dns_label("abcdef", 3), "abc");
}

}  // namespace
}  // namespace paceline::api
