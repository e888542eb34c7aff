#include "runtime/data/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/rng.h"
#include "base/text.h"
#include "runtime/data/clicks.h"
#include "runtime/data/formats.h"
#include "runtime/data/input_file.h"
#include "tests/support/assert_ok.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/data/files.h"
#include "tests/unit/runtime/data/opened.h"

namespace paceline::data {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using v1::DataSpec;
using namespace std::string_view_literals;

// Four images of 2x3 pixels, plain and gzipped, in one file and in two.
TEST(OpenTest, IdxPlainGzippedAndConcatenated) {
  TemporaryFolder folder;
  std::string pixels(24, '\0');
  std::iota(pixels.begin(), pixels.end(), '\0');
  const std::string images = idx({4, 2, 3}, pixels);
  const std::string labels = idx({4}, std::string("\3\0\2\1", 4));
  const std::vector<DataSpec> specs = {
      spec_of(DataSpec::IDX, {folder.write("images", images)}, {folder.write("labels", labels)}),
      spec_of(DataSpec::IDX, {folder.write("images.gz", gzip(images))},
              {folder.write("labels.gz", gzip(labels))}),
      spec_of(DataSpec::IDX,
              {folder.write("a", idx({1, 2, 3}, pixels.substr(0, 6))),
               folder.write("b", gzip(idx({3, 2, 3}, pixels.substr(6))))},
              {folder.write("c", idx({2}, std::string("\3\0", 2))), folder.write("d", idx({2}, "\2\1"))}),
  };
  for (const int threads : {1, 4}) {
    for (DataSpec spec : specs) {
      spec.mutable_normalization()->set_scale(0.5);
      spec.mutable_normalization()->set_mean(1);
      spec.mutable_normalization()->set_deviation(2);
      PL_ASSERT_OK(sets, open_datasets(spec, {.threads = threads}));
      EXPECT_EQ(sets->test, nullptr);
      EXPECT_EQ(sets->train->size(), 4);
      EXPECT_THAT(sets->train->shape().dims, ElementsAre(1, 2, 3));
      EXPECT_EQ(sets->train->shape().classes, 4);
      const Rows rows = fetch(*sets->train, {2, 0, 3, 1});
      ASSERT_TRUE(rows.status.ok());
      EXPECT_THAT(rows.labels, ElementsAre(2, 3, 1, 0));
      const int order[] = {2, 0, 3, 1};
      for (int i = 0; i < 24; ++i) {
        const float pixel = static_cast<float>(order[i / 6] * 6 + i % 6);
        EXPECT_FLOAT_EQ(rows.inputs[static_cast<std::size_t>(i)], (pixel * 0.5f - 1) / 2);
      }
    }
  }
}

TEST(OpenTest, NpyTypes) {
  TemporaryFolder folder;
  const std::vector<std::pair<const char*, std::string>> inputs = {
      {"<f4", raw<float>({1, 2, 3, 4})},
      {"<f8", raw<double>({1, 2, 3, 4})},
      {"|u1", raw<std::uint8_t>({1, 2, 3, 4})},
      {"<i4", raw<std::int32_t>({1, 2, 3, 4})},
      {"<i8", raw<std::int64_t>({1, 2, 3, 4})},
      {"|b1", "\1\2\3\4"},
      {"|i1", "\1\2\3\4"},
      {"<u2", raw<std::uint16_t>({1, 2, 3, 4})},
      {"<u4", raw<std::uint32_t>({1, 2, 3, 4})},
      {">i2", big({0x0001, 0x0002, 0x0003, 0x0004}, 2)},
      {">i4", big({1, 2, 3, 4}, 4)},
      {">i8", big({1, 2, 3, 4}, 8)},
      {">f2", big({0x3c00, 0x4000, 0x4200, 0x4400}, 2)},
      {"<f2", raw<std::uint16_t>({0x3c00, 0x4000, 0x4200, 0x4400})},
      {">f4", big({0x3f800000, 0x40000000, 0x40400000, 0x40800000}, 4)}};
  for (const auto& [type, data] : inputs) {
    const DataSpec spec = spec_of(DataSpec::NPY, {folder.write("x.npy", npy(type, "(2, 2)", data))},
                                  {folder.write("y.npy", npy(">i8", "(2,)", big({5, 0}, 8)))});
    PL_ASSERT_OK(sets, open_datasets(spec, {}));
    const Rows rows = fetch_all(*sets->train);
    EXPECT_THAT(rows.inputs, ElementsAre(1, 2, 3, 4)) << type;
    EXPECT_THAT(rows.labels, ElementsAre(5, 0));
  }
}

TEST(OpenTest, NpyValuesAndOrder) {
  TemporaryFolder folder;
  struct Case {
    std::string file;
    std::vector<float> values;  // of two rows
  };
  std::string fortran = npy("|u1", "(2, 3, 2)", "acegikbdfhjl");
  fortran.replace(fortran.find("False"), 5, "True ");
  std::string both = npy(">i2", "(2, 2)", big({1, 0xfffd, 0xfffe, 4}, 2));
  both.replace(both.find("False"), 5, "True ");
  const Case cases[] = {
      // Element [i][j][k] lies at i + 2 j + 6 k.
      {fortran, {'a', 'b', 'e', 'f', 'i', 'j', 'c', 'd', 'g', 'h', 'k', 'l'}},
      {both, {1, -2, -3, 4}},
      {npy("|i1", "(2, 1)", "\xff\x7f"), {-1, 127}},
      {npy("<u2", "(2, 1)", "\xff\xff\1\0"sv), {65535, 1}},
      // Halves: -65504, the smallest subnormal, the largest one, 0.1.
      {npy("<f2", "(2, 2)", raw<std::uint16_t>({0xfbff, 0x0001, 0x03ff, 0x2e66})),
       {-65504, 0x1p-24f, 1023 * 0x1p-24f, 0.0999755859375f}},
  };
  for (const Case& c : cases) {
    PL_ASSERT_OK(sets, open_datasets(spec_of(DataSpec::NPY, {folder.write("x.npy", c.file)},
                                             {folder.write("y.npy", npy("|u1", "(2,)", "\1\2"))}),
                                     {}));
    EXPECT_THAT(fetch_all(*sets->train).inputs, ElementsAreArray(c.values));
  }
}

TEST(OpenTest, Cifar10) {
  TemporaryFolder folder;
  std::string records;
  for (int record = 0; record < 3; ++record) {
    records += static_cast<char>(9 - record);
    for (int i = 0; i < 3072; ++i) records += static_cast<char>(record * 7 + i);
  }
  const auto first = static_cast<std::size_t>(kCifarRecordBytes);
  const DataSpec spec = spec_of(DataSpec::CIFAR10, {folder.write("1.bin", records.substr(0, first)),
                                                    folder.write("2.bin.gz", gzip(records.substr(first)))});
  PL_ASSERT_OK(sets, open_datasets(spec, {}));
  EXPECT_THAT(sets->train->shape().dims, ElementsAre(3, 32, 32));
  const Rows rows = fetch_all(*sets->train);
  EXPECT_THAT(rows.labels, ElementsAre(9, 8, 7));
  for (std::size_t i = 0; i < rows.inputs.size(); ++i) {
    ASSERT_EQ(rows.inputs[i], static_cast<float>(static_cast<std::uint8_t>(i / 3072 * 7 + i % 3072)));
  }
}

TEST(OpenTest, TheDigitsOfTheExample) {
  DataSpec spec = spec_of(DataSpec::CSV, {source_path("examples/data/digits.csv.gz")});
  for (const std::int64_t d : {1, 8, 8}) spec.add_shape(d);
  spec.set_test_fraction(0.2);
  PL_ASSERT_OK(sets, open_datasets(spec, {.seed = 1}));
  EXPECT_EQ(sets->train->size(), 1438);
  EXPECT_EQ(sets->test->size(), 359);
  EXPECT_EQ(sets->train->shape().classes, 10);
  EXPECT_THAT(sets->train->shape().dims, ElementsAre(1, 8, 8));
  const Rows rows = fetch_all(*sets->train);
  EXPECT_EQ(*std::max_element(rows.inputs.begin(), rows.inputs.end()), 16);
}

TEST(OpenTest, FashionMnist) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "Debian's package dataset-fashion-mnist isn't installed";
  DataSpec spec = spec_of(DataSpec::IDX, {folder + "train-images-idx3-ubyte.gz"},
                          {folder + "train-labels-idx1-ubyte.gz"});
  spec.mutable_test()->add_inputs(folder + "t10k-images-idx3-ubyte.gz");
  spec.mutable_test()->add_labels(folder + "t10k-labels-idx1-ubyte.gz");
  PL_ASSERT_OK(sets, open_datasets(spec, {.threads = 2}));
  EXPECT_EQ(sets->train->size(), 60000);
  EXPECT_EQ(sets->test->size(), 10000);
  const Rows rows = fetch_all(*sets->test);
  for (int label = 0; label < 10; ++label)
    EXPECT_EQ(std::count(rows.labels.begin(), rows.labels.end(), label), 1000);
  EXPECT_EQ(*std::max_element(rows.inputs.begin(), rows.inputs.end()), 255);
}

TEST(OpenTest, TokensAcrossFiles) {
  TemporaryFolder folder;
  const DataSpec spec = spec_of(
      DataSpec::TOKENS, {folder.write("a", raw<std::uint16_t>({0, 1, 2, 3, 4})), folder.write("b", ""),
                         folder.write("c", raw<std::uint16_t>({5, 6, 7, 8, 65535, 10}))});
  PL_ASSERT_OK(sets, open_datasets(spec, {.block_size = 3}));
  ASSERT_EQ(sets->train->size(), 3) << "11 tokens: the tenth is the last label";
  const Rows rows = fetch_all(*sets->train);
  EXPECT_THAT(rows.tokens, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(rows.labels, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 65535));
}

TEST(OpenTest, WideTokensAndText) {
  TemporaryFolder folder;
  DataSpec wide = spec_of(DataSpec::TOKENS, {folder.write("a", raw<std::uint32_t>({7, 70000, 4000000000u}))});
  wide.set_token_type(DataSpec::UINT32);
  EXPECT_THAT(error_of(wide, {.block_size = 1}), HasSubstr("byte 8: token 4000000000"));
  PL_ASSERT_OK(sets, open_datasets(wide, {.block_size = 1, .inspected_at_once = 0}));
  EXPECT_EQ(sets->train->place_of(1), wide.train().inputs(0) + ": byte 4");

  PL_ASSERT_OK(text, open_datasets(spec_of(DataSpec::TEXT,
                                           {folder.write("t", "To be,"), folder.write("u", " or not\xff")}),
                                   {.block_size = 4}));
  EXPECT_EQ(text->train->shape().classes, 256);
  EXPECT_EQ(text->train->size(), 3);
  EXPECT_THAT(fetch(*text->train, {1}).tokens, ElementsAreArray({'e', ',', ' ', 'o'}));
  EXPECT_EQ(fetch(*text->train, {2}).labels.back(), 't');
}

TEST(OpenTest, SplitIsDisjointCompleteAndSeeded) {
  TemporaryFolder folder;
  std::string csv;
  for (int i = 0; i < 500; ++i) csv += str_cat(i, ",", i % 10, "\n");
  DataSpec spec = spec_of(DataSpec::CSV, {folder.write("data.csv", csv)});
  spec.set_test_fraction(0.3);
  std::vector<std::vector<float>> held_out;
  for (const std::uint64_t seed : {1, 1, 2}) {
    PL_ASSERT_OK(sets, open_datasets(spec, {.seed = seed}));
    const Rows train = fetch_all(*sets->train), test = fetch_all(*sets->test);
    ASSERT_EQ(test.inputs.size(), 150u);
    std::set<float> all(train.inputs.begin(), train.inputs.end());
    all.insert(test.inputs.begin(), test.inputs.end());
    EXPECT_EQ(all.size(), 500u);
    for (std::size_t i = 0; i < train.inputs.size(); ++i) {
      EXPECT_EQ(train.labels[i], static_cast<int>(train.inputs[i]) % 10);
    }
    held_out.push_back(test.inputs);
  }
  EXPECT_EQ(held_out[0], held_out[1]);
  EXPECT_NE(held_out[0], held_out[2]);
}

TEST(OpenTest, ClicksSayHowManyValuesTheirFieldsHaveAndTheBestAuc) {
  DataSpec spec;
  spec.set_format(DataSpec::CLICKS);
  v1::ClicksSpec& clicks = *spec.mutable_clicks();
  clicks.set_samples(1000);
  for (const std::int64_t size : {10, 20, 3000}) clicks.add_vocabularies(size);
  clicks.set_exponent(1);
  clicks.set_click_rate(0.3);
  clicks.set_signal(1.5);
  for (const double fraction : {0.0, 0.25}) {
    spec.set_test_fraction(fraction);
    PL_ASSERT_OK(sets, open_datasets(spec, {.seed = 3}));
    EXPECT_THAT(sets->train->shape().vocabularies, ElementsAre(10, 20, 3000));
    ASSERT_NE(sets->best_auc, nullptr);
    const ExpectedAuc best = sets->best_auc(), exact = (*ClickLog::make(clicks))->bayes_auc(1 << 18);
    EXPECT_NEAR(best.value, exact.value, 4 * (best.standard_error + exact.standard_error));
    EXPECT_LT(best.standard_error, 0.002);
    EXPECT_NEAR(best.positives, 0.3, 0.01);
  }
}

// What a crop and a flip do, done the slow way: every result is one of the shifts, mirrored or not; all
// occur; and a sample's result depends on nothing but seed and index.
TEST(OpenTest, AugmentationIsAShiftAndAMirror) {
  TemporaryFolder folder;
  const std::int64_t height = 4, width = 5, count = 300;
  std::string pixels;
  for (std::int64_t i = 0; i < count * height * width; ++i)
    pixels += static_cast<char>(1 + i % (height * width));
  DataSpec spec = spec_of(DataSpec::IDX, {folder.write("x", idx({300, 4, 5}, pixels))},
                          {folder.write("y", idx({300}, std::string(300, '\0')))});
  spec.mutable_augmentation()->set_flip(true);
  spec.mutable_augmentation()->set_crop(2);
  PL_ASSERT_OK(sets, open_datasets(spec, {}));

  std::set<std::vector<float>> allowed, seen;
  for (std::int64_t down = -2; down <= 2; ++down) {
    for (std::int64_t right = -2; right <= 2; ++right) {
      for (const bool mirror : {false, true}) {
        std::vector<float> image;
        for (std::int64_t y = 0; y < height; ++y) {
          for (std::int64_t x = 0; x < width; ++x) {
            const std::int64_t sy = y + down, sx = (mirror ? width - 1 - x : x) + right;
            const bool inside = sy >= 0 && sy < height && sx >= 0 && sx < width;
            image.push_back(inside ? static_cast<float>(1 + sy * width + sx) : 0.0f);
          }
        }
        allowed.insert(image);
      }
    }
  }
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  const Rows rows = fetch(*sets->train, indices, 77);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto begin = rows.inputs.begin() + i * height * width;
    const std::vector<float> image(begin, begin + height * width);
    EXPECT_TRUE(allowed.contains(image)) << "image " << i;
    seen.insert(image);
    EXPECT_EQ(fetch(*sets->train, {i}, 77).inputs, image) << "alone or in a batch";
  }
  EXPECT_GT(seen.size(), 45u) << "of 50 outcomes";
  EXPECT_NE(fetch(*sets->train, indices, 78).inputs, rows.inputs);
  EXPECT_EQ(fetch(*sets->train, {0}).inputs[0], 1) << "seed 0 is none";
}

TEST(OpenTest, TheShapeTellsTheSmallestAndLargestLabel) {
  TemporaryFolder folder;
  PL_ASSERT_OK(csv, open_datasets(spec_of(DataSpec::CSV, {folder.write("a.csv", "1,3\n2,1\n2,10\n")}), {}));
  EXPECT_EQ(csv->train->shape().smallest_label, 1);
  EXPECT_EQ(csv->train->shape().classes, 11);
  PL_ASSERT_OK(arrays,
               open_datasets(spec_of(DataSpec::NPY, {folder.write("x.npy", npy("<f4", "(2, 1)", "abcdefgh"))},
                                     {folder.write("y.npy", npy("|u1", "(2,)", "\x02\x04"))}),
                             {}));
  EXPECT_EQ(arrays->train->shape().smallest_label, 2);
  EXPECT_EQ(arrays->train->shape().classes, 5);
}

TEST(OpenTest, CustomDataSets) {
  TemporaryFolder folder;
  const std::string csv = folder.write("a.csv", "1,0\n2,1\n");
  OpenOptions options;
  options.custom["doubled"] = [&](const std::map<std::string, std::string>& parameters, std::uint64_t seed) {
    EXPECT_EQ(parameters.at("size"), "2");
    EXPECT_EQ(seed, 9u);
    return open_datasets(spec_of(DataSpec::CSV, {csv}), {});
  };
  options.seed = 9;
  DataSpec spec;
  spec.set_format(DataSpec::CUSTOM);
  spec.mutable_custom()->set_name("doubled");
  (*spec.mutable_custom()->mutable_parameters())["size"] = "2";
  EXPECT_EQ((*open_datasets(spec, options)).train->size(), 2);
  spec.mutable_custom()->set_name("tripled");
  EXPECT_THAT(error_of(spec, options), HasSubstr("'tripled' isn't known to this program; known: doubled"));
}

TEST(OpenTest, UnreadableFilesAreToldFromWrongFields) {
  TemporaryFolder folder;
  using enum absl::StatusCode;
  DataSpec spec = spec_of(DataSpec::CSV, {"/no/such/folder/absent.csv"});
  EXPECT_EQ(open_datasets(spec, {}).status().code(), kDataLoss);
  spec = spec_of(DataSpec::CSV, {folder.write("damaged.csv", "1,2,0\n1,two,1\n")});
  EXPECT_EQ(open_datasets(spec, {}).status().code(), kDataLoss);
  spec = spec_of(DataSpec::CSV, {folder.write("fine.csv", "1,2,0\n1,2,1\n")});
  spec.mutable_shape()->Add(3);
  EXPECT_EQ(open_datasets(spec, {}).status().code(), kInvalidArgument);
}

TEST(OpenTest, ErrorsNameTheFileAndWhatIsAllowed) {
  TemporaryFolder folder;
  const std::string images = folder.write("images", idx({2, 2, 2}, "abcdefgh"));
  const std::string wide = folder.write("wide", idx({2, 2, 3}, "abcdefghijkl"));
  const std::string labels = folder.write("labels", idx({2}, std::string("\0\1", 2)));
  const std::string three = folder.write("three", idx({3}, std::string(3, '\1')));
  const std::string csv = folder.write("a.csv", "1,2,3\n");
  const std::string packed = gzip(std::string(1000, 'x'));
  const auto with = [](DataSpec spec, const std::function<void(DataSpec&)>& change) {
    change(spec);
    return spec;
  };
  const DataSpec good = spec_of(DataSpec::IDX, {images}, {labels});
  const std::vector<std::pair<DataSpec, std::string>> cases = {
      {spec_of(DataSpec::FORMAT_UNSPECIFIED, {images}), "data.format 0"},
      {spec_of(DataSpec::IDX, {}), "data.train.inputs: no files"},
      {spec_of(DataSpec::IDX, {images + "x"}, {labels}),
       "imagesx: No such file or directory; it must lie where the member runs: in a pod it is part of the "
       "image, "
       "or on a volume that the template of each role but ps mounts"},
      {spec_of(DataSpec::IDX, {images}), "labels: this format keeps them in files of their own"},
      {spec_of(DataSpec::CSV, {csv}, {labels}), "labels: this format keeps them in its input files"},
      {spec_of(DataSpec::IDX, {images}, {three}), "2 samples, but"},
      {spec_of(DataSpec::IDX, {images}, {images}), "labels of shape [2, 2, 2]"},
      {spec_of(DataSpec::IDX, {images, wide}, {labels, labels}), "wide: rows of shape [1, 2, 3]"},
      {spec_of(DataSpec::IDX, {csv}, {labels}), "a.csv: not an IDX file"},
      {spec_of(DataSpec::IDX, {folder.write("t.gz", packed.substr(0, 25))}, {labels}),
       "middle of the gzip stream"},
      {spec_of(DataSpec::IDX, {folder.write("g.gz", packed + "garbage, more of it")}, {labels}),
       "after the end of the gzip"},
      {spec_of(DataSpec::IDX, {folder.write("p.gz", "<!DOCTYPE html>\n<html>")}, {labels}),
       "p.gz: not data, but a web page"},
      {spec_of(DataSpec::CSV, {folder.write("p.csv", gzip("<html><body>"))}),
       "p.csv: not data, but a web page"},
      {spec_of(DataSpec::TOKENS, {folder.write("l", "version https://git-lfs.github.com/spec/v1\n")}),
       "l: not data, but a pointer of Git LFS"},
      {spec_of(DataSpec::NPY, {folder.write("x.npz", "PK\3\4...")}, {labels}), "not data, but a zip archive"},
      {spec_of(DataSpec::CIFAR10,
               {folder.write("c.gz", gzip(std::string(257, 'x') + "ustar" + std::string(762, '\0')))}),
       "c.gz: not data, but a tar archive"},
      {spec_of(DataSpec::NPY, {folder.write("x.npy", npy("<f4", "(1, 1)", "abcd"))},
               {folder.write("y.npy", npy("<f4", "(1,)", raw<float>({0.5f})))}),
       "label 0 is 0.5; allowed: whole"},
      {spec_of(DataSpec::CSV, {csv, folder.write("b.csv", "1,2\n")}),
       "b.csv: 2 columns, the first file has 3"},
      {spec_of(DataSpec::TEXT, {csv}), "blockSize"},
      {with(good, [](DataSpec& s) { s.add_shape(5); }), "shape [5] doesn't fit"},
      {with(good, [](DataSpec& s) { s.add_shape(-2), s.add_shape(-2); }), "shape [-2, -2] doesn't fit"},
      {with(good, [](DataSpec& s) { s.add_shape(1ll << 62), s.add_shape(4); }), "doesn't fit"},
      {with(good, [](DataSpec& s) { s.mutable_augmentation()->set_crop(2); }),
       "augment.crop 2; allowed: 0 to 1"},
      {with(spec_of(DataSpec::CSV, {csv}), [](DataSpec& s) { s.mutable_augmentation()->set_flip(true); }),
       "not images"},
      {with(good, [](DataSpec& s) { s.mutable_normalization()->set_scale(1); }), "normalize.deviation 0"},
      {with(good, [](DataSpec& s) { s.set_test_fraction(1); }), "testFraction 1"},
      {with(spec_of(DataSpec::CSV, {csv}), [](DataSpec& s) { s.set_test_fraction(0.5); }),
       "one sample can't be split"},
      {with(good,
            [&](DataSpec& s) { s.mutable_test()->add_inputs(wide), s.mutable_test()->add_labels(labels); }),
       "test samples have shape [1, 2, 3], training samples [1, 2, 2]"},
  };
  for (const auto& [spec, message] : cases) EXPECT_THAT(error_of(spec), HasSubstr(message));
  const DataSpec tokens = spec_of(DataSpec::TOKENS, {folder.write("odd", "abc")});
  EXPECT_THAT(error_of(tokens, {.block_size = 1}), HasSubstr("not a multiple of 2"));
  EXPECT_THAT(error_of(spec_of(DataSpec::TEXT, {csv}), {.block_size = 6}), HasSubstr("hold 6 tokens"));
}

TEST(InputFileTest, GzipMembersAndLimits) {
  TemporaryFolder folder;
  const std::string two = folder.write("two.gz", gzip("first ") + gzip("second") + std::string(500, '\0'));
  PL_ASSERT_OK(file, InputFile::open(two));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>((*file)->bytes().data()), (*file)->bytes().size()),
            "first second");
  EXPECT_EQ(InputFile::open(two, 11).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(InputFile::open(two, 12).ok());
  // The trailer lies: a size of 2^32 - 1 takes no memory, and a stream that says less than it holds is still
  // read.
  std::string liar = gzip(std::string(200000, 'z'));
  liar.replace(liar.size() - 4, 4, "\xff\xff\xff\xff");
  EXPECT_THAT(std::string(InputFile::open(folder.write("liar.gz", liar)).status().message()),
              HasSubstr("damaged gzip"));
  EXPECT_EQ(
      (*InputFile::open(folder.write("z.gz", gzip(std::string(200000, 'z')) + gzip("z"))))->bytes().size(),
      200001u);
}

TEST(InputFileTest, MutatedGzipNeverCrashes) {
  TemporaryFolder folder;
  std::string content;
  Rng text(1, 1);
  for (int i = 0; i < 3000; ++i) content += static_cast<char>('a' + text.below(4));
  const std::string file = gzip(content);
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed, 3);
    std::string changed = file;
    for (std::uint64_t i = 1 + rng.below(4); i > 0; --i)
      changed[rng.below(changed.size())] = static_cast<char>(rng.next_u64());
    if (rng.below(3) == 0) changed.resize(rng.below(changed.size()));
    const auto opened = InputFile::open(folder.write("m.gz", changed), 100000);
    if (opened.ok()) continue;
    EXPECT_TRUE(absl::IsInvalidArgument(opened.status()) || absl::IsResourceExhausted(opened.status()))
        << seed;
  }
}

}  // namespace
}  // namespace paceline::data
