#include "runtime/data/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/unit/runtime/data/files.h"
#include "tests/unit/runtime/data/opened.h"

namespace paceline::data {
namespace {

using ::testing::HasSubstr;
using v1::DataSpec;

// At once, and beside the training, where every fetch of either set tells it.
TEST(Inspection, FilesAreInspectedBeforeTraining) {
  TemporaryFolder folder;
  const std::string good = folder.write("good", raw<std::uint16_t>({0, 1, 2, 3, 4}));
  const std::string y = folder.write("y.npy", npy("|u1", "(2,)", "\1\2"));
  const auto x = [&](const char* name, double bad) {
    return folder.write(name, npy("<f8", "(2, 3)", raw<double>({1, 2, 3, 4, 5, bad})));
  };
  const auto normalized = [](DataSpec spec) {
    spec.mutable_normalization()->set_scale(1e10);
    spec.mutable_normalization()->set_deviation(1);
    return spec;
  };
  const std::vector<std::string> nan = {x("nan.npy", NAN)}, inf = {x("inf.npy", -INFINITY)},
                                 big = {x("big.npy", 1e300)}, much = {x("much.npy", 1e30)};
  DataSpec tokens = spec_of(DataSpec::TOKENS, {good});
  tokens.mutable_test()->add_inputs(good);
  tokens.mutable_test()->add_inputs(folder.write("bad", raw<std::uint16_t>({5, 6, 7, 100, 9, 10})));
  const std::pair<DataSpec, std::string> cases[] = {
      {tokens, "bad: byte 6: token 100; allowed: below the vocabulary's size, 100"},
      {spec_of(DataSpec::TEXT, {folder.write("text", "To be, or not t\xf6 be")}), "text: byte 15: token 246"},
      {spec_of(DataSpec::NPY, nan, {y}), "nan.npy: sample 1, feature 2 is nan; allowed: finite numbers"},
      {spec_of(DataSpec::NPY, inf, {y}), "inf.npy: sample 1, feature 2 is -inf; allowed: finite numbers"},
      {spec_of(DataSpec::NPY, big, {y}),
       "big.npy: sample 1, feature 2 is 1e+300, and inf as a normalized 32-bit float; allowed: finite "
       "numbers"},
      {normalized(spec_of(DataSpec::NPY, much, {y})), "much.npy: sample 1, feature 2 is 1e+30, and inf"},
      {normalized(spec_of(DataSpec::CSV, {folder.write("a.csv", "1,0\n-2e35,1\n")})),
       "a.csv: sample 1, feature 0 is -2e+35, and -inf"},
  };
  for (const auto& [spec, message] : cases) {
    OpenOptions options{.block_size = 3, .vocabulary_size = spec.format() == DataSpec::TEXT ? 200 : 100};
    EXPECT_THAT(error_of(spec, options), HasSubstr(message));
    EXPECT_EQ(open_datasets(spec, options).status().code(), absl::StatusCode::kDataLoss);
    options.inspected_at_once = 0;
    const auto sets = open_datasets(spec, options);
    ASSERT_TRUE(sets.ok()) << sets.status();
    absl::Status status;
    while (status.ok()) status = fetch(*sets->train, {0}).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  DataSpec fine =
      spec_of(DataSpec::IDX, {folder.write("x", idx({1, 2}, "ab"))}, {folder.write("l", idx({1}, "\1"))});
  fine.mutable_normalization()->set_scale(1e300);
  fine.mutable_normalization()->set_deviation(1);
  EXPECT_THAT(error_of(fine), HasSubstr("normalize: scale / deviation is inf"));
}

TEST(Inspection, TokensOfAnotherWidthAndHeadersAreTold) {
  TemporaryFolder folder;
  const auto written = [](int bytes, int tokens) {
    std::string file;
    for (int i = 0; i < tokens; ++i) {
      for (int b = 0; b < bytes; ++b) file += static_cast<char>(b == 0 ? i * 7 % 50 : 0);
    }
    return file;
  };
  const std::string header = raw<std::int32_t>({20240520, 1, 100}) + std::string(1012, '\0');
  const char* const none = "no error";
  const auto alternating = [] {  // of states and two actions: tokens of 16 bits
    std::string file;
    for (int i = 0; i < 200; ++i)
      file += {static_cast<char>(i % 40), '\0', static_cast<char>(i / 3 % 2), '\0'};
    return file;
  };
  struct Case {
    std::string file;
    DataSpec::TokenType type;
    std::int64_t vocabulary;
    const char* message;
  };
  const Case cases[] = {
      {written(2, 200), DataSpec::UINT16, 50, none},
      {written(4, 200), DataSpec::UINT32, 50, none},
      {written(4, 200), DataSpec::UINT16, 50,
       "have 32 bits, not 16; set spec.training.data.tokenType: uint32"},
      {written(8, 200), DataSpec::UINT16, 50, "have 64 bits"},
      {written(8, 200), DataSpec::UINT32, 50, "have 64 bits"},
      {written(2, 200), DataSpec::UINT32, 50, "set spec.training.data.tokenType: uint16"},
      {written(4, 60), DataSpec::UINT16, 50, none},
      {alternating(), DataSpec::UINT16, 50, none},
      {alternating(), DataSpec::UINT16, 100000, "have 32 bits"},
      {header + written(2, 100), DataSpec::UINT16, 65536, "llm.c's header"},
      {header + written(4, 100), DataSpec::UINT32, 65536, "llm.c's header"},
  };
  for (const Case& c : cases) {
    DataSpec spec = spec_of(DataSpec::TOKENS, {folder.write("t.bin", c.file)});
    spec.set_token_type(c.type);
    EXPECT_THAT(error_of(spec, {.block_size = 8, .vocabulary_size = c.vocabulary}), HasSubstr(c.message));
  }
}

TEST(Inspection, WarnsOfHeldOutFilesThatAreTrainedOn) {
  TemporaryFolder folder;
  const std::string a = folder.write("a.csv", "1,0\n2,1\n"), b = folder.write("b.csv", "3,0\n4,1\n");
  const std::string link = a + ".link", hard = a + ".hard";
  std::filesystem::create_symlink(a, link);
  std::filesystem::create_hard_link(a, hard);
  struct Case {
    std::vector<std::string> train, test;
    double fraction;
    std::string file;  // that is warned of; empty: none
  };
  const Case cases[] = {{{a}, {b}, 0, ""},         {{a}, {a}, 0, a},      {{b, a}, {b + "x", link}, 0, link},
                        {{link}, {hard}, 0, hard}, {{a, b}, {}, 0.5, ""}, {{a, b, hard}, {}, 0.5, hard},
                        {{a, b, a}, {}, 0, ""}};
  folder.write("b.csvx", "5,0\n");
  for (const Case& c : cases) {
    DataSpec spec = spec_of(DataSpec::CSV, c.train);
    for (const std::string& path : c.test) spec.mutable_test()->add_inputs(path);
    spec.set_test_fraction(c.fraction);
    const auto sets = open_datasets(spec, {});
    ASSERT_TRUE(sets.ok()) << sets.status();
    EXPECT_EQ(sets->warning.empty(), c.file.empty()) << sets->warning;
    EXPECT_THAT(sets->warning, HasSubstr(c.file));
  }
}

}  // namespace
}  // namespace paceline::data
