#pragma once

// The file formats, as bytes in, arrays out; the arrays point into the bytes. Pure. Every length is compared
// with the bytes that are there before it is used. Errors are INVALID_ARGUMENT with the byte (or line and
// column), what was found and what is allowed; the caller adds the file's name.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/array_dataset.h"

namespace paceline::data {

inline constexpr int kMaxArrayRank = 8;
inline constexpr std::size_t kMaxCsvColumns = 1 << 20;
inline constexpr int kMaxLabel = 1 << 24;  // floats count exactly up to here

// Whether the file is of another kind than any of ours, which nobody means to train on: a web page (which
// `text` may be), an archive. The error says of which, and what helps.
absl::Status check_is_data(std::span<const std::byte> file, bool text);

// An array in a file: `data` holds product(dims) elements of `type`.
struct FileArray {
  ElementType type = ElementType::kU8;
  std::vector<std::int64_t> dims;  // at least one; the first is the number of rows
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner = nullptr;  // of data that isn't the file's own
};
// That `data` is as long as the dimensions say, at `element` bytes each.
absl::Status check_array_bytes(const FileArray& array, std::uint64_t element);
// "[1, 28, 28]"
std::string dims_text(std::span<const std::int64_t> dims);

// IDX (http://yann.lecun.com/exdb/mnist): 0, 0, type, rank, then rank big-endian u32 sizes, then the
// elements. Type: 8 (unsigned bytes).
absl::StatusOr<FileArray> parse_idx(std::span<const std::byte> file);

// NumPy's .npy, versions 1 to 3 (numpy.lib.format): b1, i1, u1, i2, u2, i4, u4, i8, f2, f4, f8, of either
// byte order, in C or Fortran order. Arrays of a type, or in an order, that ElementType and C order don't
// have are copied.
absl::StatusOr<FileArray> parse_npy(std::span<const std::byte> file);

// CIFAR-10's binary version: records of 1 label byte (0 to 9) and 3 * 32 * 32 bytes, planes red, green, blue.
inline constexpr std::int64_t kCifarRecordBytes = 1 + 3 * 32 * 32;
absl::StatusOr<std::int64_t> count_cifar_records(std::span<const std::byte> file);

// CSV by RFC 4180, one sample a record: numbers, quoted or not, UTF-8. Spaces around fields and empty lines
// are left out. All records have the same number of columns.
struct CsvOptions {
  std::int64_t label_column = -1;  // holds the class, a whole number >= 0; negative: from the end
  bool header = false;             // the first record has names, and is left out
  char separator = ',';            // or ';', or '\t'
};
struct CsvTable {
  std::int64_t features = 0;  // columns without the label
  std::vector<float> values;  // rows * features
  std::vector<std::int32_t> labels;
};
absl::StatusOr<CsvTable> parse_csv(std::string_view text, const CsvOptions& options);

}  // namespace paceline::data
