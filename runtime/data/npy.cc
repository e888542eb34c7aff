#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "base/status.h"
#include "runtime/data/formats.h"

namespace paceline::data {

namespace {

constexpr std::size_t kMaxNpyHeaderBytes = 64 * 1024;
constexpr std::string_view kMagic = "\x93NUMPY";

// As the file has it, after the byte order, and what it becomes.
struct FileType {
  std::string_view name;
  ElementType type;
  std::size_t bytes() const { return static_cast<std::size_t>(name[1] - '0'); }
};
constexpr FileType kTypes[] = {
    {"b1", ElementType::kU8},  {"u1", ElementType::kU8},  {"i1", ElementType::kI32},
    {"i2", ElementType::kI32}, {"u2", ElementType::kI32}, {"i4", ElementType::kI32},
    {"u4", ElementType::kI64}, {"i8", ElementType::kI64}, {"f2", ElementType::kF32},
    {"f4", ElementType::kF32}, {"f8", ElementType::kF64}};

// IEEE 754's binary16.
float from_half(std::uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const auto fraction = static_cast<float>(bits & 1023);
  float value = std::ldexp(exponent == 0 ? fraction : fraction + 1024, std::max(exponent, 1) - 25);
  if (exponent == 31) value = fraction == 0 ? HUGE_VALF : std::nanf("");
  return (bits >> 15) != 0 ? -value : value;
}

// Reads the header, a Python dict like {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::size_t offset) : text_(text), offset_(offset) {}

  absl::Status run() {
    PL_RETURN_IF_ERROR(expect('{'));
    while (!accept('}')) {
      PL_ASSIGN_OR_RETURN(const std::string_view key, quoted());
      PL_RETURN_IF_ERROR(expect(':'));
      if (key == "descr") {
        PL_RETURN_IF_ERROR(read_type());
      } else if (key == "fortran_order") {
        PL_RETURN_IF_ERROR(read_order());
      } else if (key == "shape") {
        PL_RETURN_IF_ERROR(read_shape());
      } else {
        return error("an unknown key; allowed: descr, fortran_order, shape");
      }
      if (!accept(',')) {
        PL_RETURN_IF_ERROR(expect('}'));
        break;
      }
    }
    if (!type_ || !order_seen_ || !dims_) return error("descr, fortran_order or shape is missing");
    return absl::OkStatus();
  }

  const FileType& type() const { return *type_; }
  bool big_endian() const { return big_endian_; }
  bool fortran_order() const { return fortran_order_; }
  const std::vector<std::int64_t>& dims() const { return *dims_; }

 private:
  absl::Status error(std::string_view what) const {
    return absl::InvalidArgumentError(str_cat("byte ", offset_ + at_, ": the .npy header has ", what));
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  absl::Status expect(char c) {
    if (accept(c)) return absl::OkStatus();
    return error(str_cat("no '", std::string_view(&c, 1), "' here"));
  }
  absl::StatusOr<std::string_view> quoted() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end =
        quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) return error("no quoted text here");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  absl::Status read_type() {
    const std::size_t begin = at_;
    const auto name = quoted();
    if (name.ok() && name->size() == 3 &&
        std::string_view("<>|").find((*name)[0]) != std::string_view::npos) {
      big_endian_ = (*name)[0] == '>';
      for (const FileType& known : kTypes) {
        if (name->substr(1) == known.name) type_ = known;
      }
    }
    if (type_) return absl::OkStatus();
    at_ = begin;
    std::string allowed;
    for (const FileType& known : kTypes) allowed += str_cat(allowed.empty() ? "" : ", ", known.name);
    return error(str_cat("an element type that is not supported; allowed: ", allowed));
  }
  absl::Status read_order() {
    fortran_order_ = accept(std::string_view("True"));
    if (!fortran_order_ && !accept(std::string_view("False"))) return error("no True or False here");
    order_seen_ = true;
    return absl::OkStatus();
  }
  absl::Status read_shape() {
    std::vector<std::int64_t> dims;
    PL_RETURN_IF_ERROR(expect('('));
    while (!accept(')')) {
      skip_spaces();
      std::int64_t size = 0;
      const auto [end, failed] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (failed != std::errc() || size < 0) return error("no dimension here");
      if (dims.size() == kMaxArrayRank) return error(str_cat("more than ", kMaxArrayRank, " dimensions"));
      at_ = static_cast<std::size_t>(end - text_.data());
      dims.push_back(size);
      if (!accept(',')) {
        PL_RETURN_IF_ERROR(expect(')'));
        break;
      }
    }
    dims_ = std::move(dims);
    return absl::OkStatus();
  }

  const std::string_view text_;
  const std::size_t offset_;
  std::size_t at_ = 0;
  std::optional<FileType> type_;
  bool big_endian_ = false;
  bool fortran_order_ = false;
  bool order_seen_ = false;
  std::optional<std::vector<std::int64_t>> dims_;
};

// `bytes` of one number, as they lie in the file, as an element of `type` at `to`.
void put(std::string_view bytes, bool big_endian, const FileType& type, std::byte* to) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t at = big_endian ? i : bytes.size() - 1 - i;
    bits = bits << 8 | static_cast<std::uint8_t>(bytes[at]);
  }
  if (type.name == "f2") {
    const float value = from_half(bits);
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  const std::size_t unused = 64 - 8 * bytes.size();
  if (type.name[0] == 'i')
    bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
  std::memcpy(to, &bits, static_cast<std::size_t>(element_bytes(type.type)));
}

// The same array, in C order, of `header`'s element type.
FileArray converted(const FileArray& from, const HeaderParser& header) {
  const std::size_t size = header.type().bytes(), rank = from.dims.size();
  const auto to_size = static_cast<std::size_t>(element_bytes(header.type().type));
  const std::size_t count = from.data.size() / size;
  const auto out = std::make_shared<std::vector<std::byte>>(count * to_size);
  std::array<std::size_t, kMaxArrayRank> strides{}, index{};
  std::size_t stride = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t d = header.fortran_order() ? i : rank - 1 - i;
    strides[d] = stride;
    stride *= static_cast<std::size_t>(from.dims[d]);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(from.data.data()), from.data.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    put(bytes.substr(at * size, size), header.big_endian(), header.type(), out->data() + i * to_size);
    for (std::size_t d = rank; d-- > 0;) {
      at += strides[d];
      if (++index[d] < static_cast<std::size_t>(from.dims[d])) break;
      at -= strides[d] * index[d];
      index[d] = 0;
    }
  }
  return {header.type().type, from.dims, *out, out};
}

}  // namespace

absl::StatusOr<FileArray> parse_npy(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic) || text.size() < 12) {
    return absl::InvalidArgumentError(
        "not a .npy file: it must begin with \\x93NUMPY, a version and a length");
  }
  const auto byte = [&](std::size_t i) { return std::size_t{std::to_integer<std::uint8_t>(file[i])}; };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) {
    return absl::InvalidArgumentError(str_cat("byte 6: .npy version ", version, "; allowed: 1 to 3"));
  }
  const std::size_t begin = version == 1 ? 10 : 12;
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kMaxNpyHeaderBytes || length > file.size() - begin) {
    return absl::InvalidArgumentError(str_cat("byte 8: a header of ", length, " bytes; allowed: at most ",
                                              kMaxNpyHeaderBytes, " and the ", file.size() - begin,
                                              " bytes that follow"));
  }
  HeaderParser header(text.substr(begin, length), begin);
  PL_RETURN_IF_ERROR(header.run());

  const FileType type = header.type();
  FileArray array{type.type, header.dims(), file.subspan(begin + length)};
  if (array.dims.empty())
    return absl::InvalidArgumentError("the array has no dimensions; allowed: at least one");
  PL_RETURN_IF_ERROR(check_array_bytes(array, type.bytes()));
  const bool as_it_is = type.bytes() == static_cast<std::size_t>(element_bytes(type.type)) &&
                        (type.bytes() == 1 || !header.big_endian()) &&
                        (array.dims.size() == 1 || !header.fortran_order());
  return as_it_is ? array : converted(array, header);
}

}  // namespace paceline::data
