#include "runtime/data/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/rng.h"
#include "base/text.h"
#include "tests/support/assert_ok.h"
#include "tests/unit/runtime/data/files.h"

namespace paceline::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Parse = std::function<absl::Status(std::string_view)>;

absl::Status parse_idx_text(std::string_view file) {
  return parse_idx(as_bytes(file)).status();
}
absl::Status parse_npy_text(std::string_view file) {
  return parse_npy(as_bytes(file)).status();
}
absl::Status parse_cifar_text(std::string_view file) {
  return count_cifar_records(as_bytes(file)).status();
}
absl::Status parse_csv_text(std::string_view file) {
  return parse_csv(file, {}).status();
}

struct BadFile {
  Parse parse;
  std::string file;
  std::string message;
};

void expect_refused(const std::vector<BadFile>& cases) {
  for (const BadFile& bad : cases) {
    const absl::Status status = bad.parse(bad.file);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message));
  }
}

TEST(IdxTest, Reads) {
  const std::string file = idx({2, 1, 3}, "abcdef");
  PL_ASSERT_OK(array, parse_idx(as_bytes(file)));
  EXPECT_THAT(array->dims, ElementsAre(2, 1, 3));
  EXPECT_EQ(std::memcmp(array->data.data(), "abcdef", 6), 0);
}

TEST(IdxTest, RefusesBadFiles) {
  const std::string good = idx({2, 3}, "abcdef");
  std::string floats = good;
  floats[2] = 0x0d;
  std::string flat = good;
  flat[3] = 0;
  std::string deep = good;
  deep[3] = 9;
  expect_refused({
      {parse_idx_text, "", "begins with 4 bytes"},
      {parse_idx_text, good.substr(0, 3), "this file has 3"},
      {parse_idx_text, "a,b,c\n1,2,3", "not an IDX file"},
      {parse_idx_text, floats, "element type 13 is not supported"},
      {parse_idx_text, flat, "0 dimensions; allowed: 1 to 8"},
      {parse_idx_text, deep, "9 dimensions"},
      {parse_idx_text, good.substr(0, 9), "the file ends after 9"},
      {parse_idx_text, good.substr(0, 17),
       "the header says [2, 3], 6 bytes, but 5 follow it: the file is cut; copy or download it again"},
      {parse_idx_text, good + "g", "says [2, 3], 6 bytes, but 7 follow it"},
      {parse_idx_text, idx({0, 3}, ""), "dimension 0 is 0"},
      // 2^62 elements and 2^128 elements: refused before any memory is taken.
      {parse_idx_text, idx({0x80000000, 0x80000000}, "x"), "but 1 follow it: the file is cut"},
      {parse_idx_text, idx({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, "x"), "the file is cut"},
  });
}

TEST(NpyTest, ReadsEveryTypeAndVersion) {
  const std::pair<const char*, ElementType> types[] = {{"<f4", ElementType::kF32},
                                                       {"<f8", ElementType::kF64},
                                                       {"|u1", ElementType::kU8},
                                                       {"<i4", ElementType::kI32},
                                                       {"<i8", ElementType::kI64}};
  for (const auto& [name, type] : types) {
    const std::string file =
        npy(name, "(2, 3)", std::string(static_cast<std::size_t>(6 * element_bytes(type)), 'x'));
    PL_ASSERT_OK(array, parse_npy(as_bytes(file)));
    EXPECT_EQ(array->type, type);
    EXPECT_THAT(array->dims, ElementsAre(2, 3));
  }
  for (const char version : {'\x02', '\x03'}) {
    std::string file = npy("|u1", "(4,)", "abcd");
    file[6] = version;
    file.insert(10, 2, '\0');  // the length has four bytes
    PL_ASSERT_OK(array, parse_npy(as_bytes(file)));
    EXPECT_THAT(array->dims, ElementsAre(4));
  }
}

TEST(NpyTest, RefusesBadFiles) {
  const std::string good = npy("<f4", "(1, 2)", "12345678");
  std::string newer = good;
  newer[6] = 9;
  std::string longer = good;
  longer[9] = '\x7f';
  std::string fortran = good;
  fortran.replace(fortran.find("False"), 5, "None ");
  std::string unknown = good;
  unknown.replace(unknown.find("descr"), 5, "color");
  expect_refused({
      {parse_npy_text, "", "not a .npy file"},
      {parse_npy_text, "PK\x03\x04 a zip file, as .npz is", "not a .npy file"},
      {parse_npy_text, newer, "version 9; allowed: 1 to 3"},
      {parse_npy_text, longer, "byte 8: a header of"},
      {parse_npy_text, fortran, "no True or False"},
      {parse_npy_text, unknown, "an unknown key"},
      {parse_npy_text, npy("<c8", "(1,)", "12345678"), "not supported; allowed: b1, u1, i1"},
      {parse_npy_text, npy("|O", "(1,)", "12345678"), "not supported"},
      {parse_npy_text, npy("<f4", "()", "1234"), "no dimensions"},
      {parse_npy_text, npy("<f4", "(-1, 2)", "12345678"), "no dimension here"},
      {parse_npy_text, npy("<f4", "(1 2)", "12345678"), "no ')' here"},
      {parse_npy_text, npy("<f4", "(1, 3)", "12345678"),
       "the header says [1, 3], 12 bytes, but 8 follow it: the file is cut"},
      {parse_npy_text, npy("<f4", "(1, 1)", "12345678"), "says [1, 1], 4 bytes, but 8 follow it"},
      {parse_npy_text, npy("<f8", "(1152921504606846976, 1152921504606846976)", "x"), "the file is cut"},
      {parse_npy_text, npy("<f8", "(99999999999999999999999,)", "x"), "no dimension here"},
      {parse_npy_text, npy("<f4", "(1,1,1,1,1,1,1,1,1)", "1234"), "more than 8 dimensions"},
      {parse_npy_text, npy("<f4", "(0, 2)", ""), "dimension 0 is 0"},
  });
}

TEST(CsvTest, Reads) {
  PL_ASSERT_OK(table, parse_csv("\xef\xbb\xbf"
                                "1, 2.5,7\r\n\n -3e1 ,+4,\t0\n",
                                {}));
  EXPECT_EQ(table->features, 2);
  EXPECT_THAT(table->values, ElementsAre(1.0f, 2.5f, -30.0f, 4.0f));
  EXPECT_THAT(table->labels, ElementsAre(7, 0));

  PL_ASSERT_OK(first, parse_csv("class,x,y\n3.0,1,2\n4,5,6", {.label_column = 0, .header = true}));
  EXPECT_THAT(first->labels, ElementsAre(3, 4));
  EXPECT_THAT(first->values, ElementsAre(1.0f, 2.0f, 5.0f, 6.0f));
}

TEST(CsvTest, ReadsQuotesAndSeparators) {
  const std::pair<const char*, CsvOptions> cases[] = {
      {"\"1\",\"2.5\",\"7\"\n\"-30\",4,\"0\"", {}},
      {" \"1\" , \" 2.5\t\",7\r\n-30,\"4\n\",0\r\n", {}},
      {"\"the \"\"x\"\", in\r\nmeters\",y,class\r\n1,2.5,7\r\n-30,4,0\r\n", {.header = true}},
      {"1;2.5;7\n-30;\"4\";0\n", {.separator = ';'}},
      {"x\ty\tclass\n1\t 2.5\t7\n\n-30\t\"4\"\t0", {.header = true, .separator = '\t'}},
  };
  for (const auto& [text, options] : cases) {
    const auto table = parse_csv(text, options);
    ASSERT_TRUE(table.ok()) << text << ": " << table.status();
    EXPECT_THAT(table->values, ElementsAre(1.0f, 2.5f, -30.0f, 4.0f)) << text;
    EXPECT_THAT(table->labels, ElementsAre(7, 0)) << text;
  }
}

TEST(CsvTest, AdvisesByTheFault) {
  struct Case {
    const char* text;
    const char* advice;  // empty: none
    CsvOptions options = {};
  };
  const char *const header = "; if this line names the columns, set spec.training.data.header: true",
                    *const trailing = "; the line ends with a separator: remove it",
                    *const digits = "; a number has no thousands separators, and a point before its fraction",
                    *const semicolon = "set spec.training.data.separator: semicolon",
                    *const tab = "set spec.training.data.separator: tab",
                    *const comma = "set spec.training.data.separator: comma";
  const Case cases[] = {{"x,y,class\n1,2,3\n", header},
                        {"\n1,_y\n", header},
                        {"\"a\",\"b\"\n", header},
                        {"Größe,y\n", header},
                        {"infancy,age\n", header},
                        {"1,2\nx,y\n", ""},
                        {"1,2\n3,y\n", "say by spec.training.data.labelColumn which column has them"},
                        {"nan,1\n", ""},
                        {",1\n", ""},
                        {"x,y\na,b\n", "", {.header = true}},
                        {"# a,b\n1,2\n", "; CSV has no comments: remove the lines that begin with #"},
                        {"1,2\n# 3\n", ""},
                        {"1,2,\n", trailing},
                        {"1,2\n1,2,\n", trailing},
                        {"1,2,\n", trailing, {.label_column = 0}},
                        {"\"1,000\",2\n", digits},
                        {"1'000.5,2\n", digits},
                        {"3,14;2\n", digits, {.separator = ';'}},
                        {"1;2\n", semicolon},
                        {"a;b\n1;2\n", semicolon},
                        {"1,5;2,5;0\n", semicolon},
                        {"1\t2\n", tab},
                        {"1\t2\n", tab, {.separator = ';'}},
                        {"1,2\n", comma, {.separator = ';'}}};
  for (const Case& c : cases) {
    const std::string message(parse_csv(c.text, c.options).status().message());
    EXPECT_NE(message, "") << c.text;
    EXPECT_THAT(message, HasSubstr(c.advice)) << c.text;
    EXPECT_EQ(message.find("; ") == std::string::npos, *c.advice == '\0') << message;
  }
}

TEST(CsvTest, RefusesBadFilesWithLineAndColumn) {
  expect_refused({
      {parse_csv_text, "", "no lines of numbers"},
      {parse_csv_text, "\n\r\n \n", "no lines of numbers"},
      {[](std::string_view text) { return parse_csv(text, {.header = true}).status(); }, "a,b\n",
       "after the header"},
      {parse_csv_text, "a,b\n1,2\n", "line 1, column 1: 'a' is not a finite number"},
      {parse_csv_text, "1,2\n3,4\n5,x6\n", "line 3, column 2: the label 'x6' is not"},
      {parse_csv_text, "1,2\n\n,4\n", "line 3, column 1: '' is not"},
      {parse_csv_text, "1,2,3\n1,2\n", "line 2"},
      {parse_csv_text, "1,2\n1,2,3\n", "line 2: 3 columns, the first line has 2"},
      {parse_csv_text, "1\n2\n", "line 1: 1 columns; allowed: 2"},
      {parse_csv_text, "nan,1\n", "column 1: 'nan'"},
      {parse_csv_text, "1e999,1\n", "column 1: '1e999'"},
      {parse_csv_text, "1e39,1\n", "column 1: '1e39' is too large"},
      {parse_csv_text, "1e-60,1\n", "column 1: '1e-60' is too small"},
      {parse_csv_text, "1e-999,1\n", "column 1: '1e-999' is too small"},
      {parse_csv_text, "+inf,1\n", "column 1: '+inf' is not a finite number"},
      {parse_csv_text, "1,0\r2,1\r", "its lines end with CR alone"},
      {parse_csv_text, "1,0\n2,versicolor\n",
       "line 2, column 2: the label 'versicolor' is not a class; allowed: whole numbers from 0 to"},
      {parse_csv_text, "1,-1\n", "line 1, column 2: the label '-1' is not a class"},
      {parse_csv_text, "1,0.5\n", "the label '0.5'"},
      {parse_csv_text, "1,1e20\n", "the label '1e20'"},
      {parse_csv_text, "1;2\n", "line 1: 1 columns"},
      {parse_csv_text, "1,2\n\"3\n\n\",4\nx,5\n", "line 5, column 1: 'x' is not"},
      {parse_csv_text, "1,2\n3,\"4\n5,6\n", "line 2, column 2: a quoted field begins here and does not end"},
      {parse_csv_text, "1,\"2\"3\n", "line 1, column 2: there is '3' behind a quoted field"},
      {parse_csv_text,
       std::string("\xff\xfe"
                   "1\0,\0"
                   "2\0",
                   8),
       "the text is UTF-16"},
      {parse_csv_text,
       std::string("1\0,\0"
                   "2\0",
                   6),
       "the text is UTF-16"},
      {parse_csv_text,
       std::string("\0"
                   "1\0,\0"
                   "2",
                   6),
       "the text is UTF-16"},
      {parse_csv_text, "1," + std::string(1000, 'y') + "\n", "yyy...'"},
      {[](std::string_view text) { return parse_csv(text, {.label_column = 2}).status(); }, "1,2\n",
       "labelColumn 2: line 1 has 2"},
      {[](std::string_view text) { return parse_csv(text, {.label_column = -3}).status(); }, "1,2\n",
       "allowed: -2 to 1"},
  });
}

TEST(CifarTest, CountsAndRefuses) {
  std::string file(static_cast<std::size_t>(3 * kCifarRecordBytes), '\x05');
  EXPECT_EQ(*count_cifar_records(as_bytes(file)), 3);
  file[static_cast<std::size_t>(kCifarRecordBytes)] = 10;
  expect_refused({
      {parse_cifar_text, "", "records of 3073 bytes"},
      {parse_cifar_text, file.substr(1), "not a multiple"},
      {parse_cifar_text, file, "byte 3073: label 10; allowed: 0 to 9"},
  });
}

// Random changes, cuts and insertions: a parser answers with an array inside the file or an error, and never
// reads outside (sanitizers).
TEST(FormatsTest, MutatedFilesNeverCrash) {
  const std::vector<std::pair<Parse, std::string>> seeds = {
      {[](std::string_view f) {
         const auto array = parse_idx(as_bytes(f));
         EXPECT_TRUE(!array.ok() || array->data.size() <= f.size());
         return array.status();
       },
       idx({4, 3, 2}, std::string(24, 'x'))},
      {[](std::string_view f) {
         const auto array = parse_npy(as_bytes(f));
         EXPECT_TRUE(!array.ok() || array->data.size() <= f.size());
         return array.status();
       },
       npy("<f4", "(2, 3)", std::string(24, 'x'))},
      {parse_csv_text, "1,2.5,3\n4,\"5e-3\",6\n-7,8,9\n"},
      {[](std::string_view f) { return parse_csv(f, {.label_column = 1, .header = true}).status(); },
       "a,\"b\n\"\"\",c\n1,2,3\n"},
  };
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed, 1);
    const auto& [parse, file] = seeds[rng.below(seeds.size())];
    std::string changed = file;
    for (std::uint64_t changes = 1 + rng.below(6); changes > 0 && !changed.empty(); --changes) {
      const std::size_t at = rng.below(changed.size());
      switch (rng.below(4)) {
        case 0:
          changed[at] = static_cast<char>(rng.next_u64());
          break;
        case 1:
          changed.erase(at, 1 + rng.below(8));
          break;
        case 2:
          changed.insert(at, 1 + rng.below(8), static_cast<char>(rng.next_u64()));
          break;
        default:
          changed[at] = static_cast<char>(changed[at] ^ (1 << rng.below(8)));
      }
    }
    const absl::Status status = parse(changed);
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << "seed " << seed << ": " << status;
  }
}

}  // namespace
}  // namespace paceline::data
