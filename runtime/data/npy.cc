#include <charconv>
#include <optional>
#include <string>

#include "base/status.h"
#include "runtime/data/formats.h"

namespace paceline::data {

namespace {

constexpr std::size_t kMaxNpyHeaderBytes = 64 * 1024;
constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeName {
  std::string_view name;
  ElementType type;
};
constexpr TypeName kTypes[] = {{"<f4", ElementType::kF32}, {"<f8", ElementType::kF64},
                               {"|u1", ElementType::kU8},  {"<u1", ElementType::kU8},
                               {"<i4", ElementType::kI32}, {"<i8", ElementType::kI64}};

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

  ElementType type() const { return *type_; }
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
    if (name.ok()) {
      for (const TypeName& known : kTypes) {
        if (*name == known.name) type_ = known.type;
      }
    }
    if (type_) return absl::OkStatus();
    at_ = begin;
    return error("an element type that is not supported; allowed: '<f4', '<f8', '|u1', '<i4', '<i8'");
  }
  absl::Status read_order() {
    if (!accept(std::string_view("False"))) {
      return error("no 'False' for fortran_order: save a C-ordered array (numpy.ascontiguousarray)");
    }
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
  std::optional<ElementType> type_;
  bool order_seen_ = false;
  std::optional<std::vector<std::int64_t>> dims_;
};

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

  FileArray array{header.type(), header.dims(), file.subspan(begin + length)};
  if (array.dims.empty())
    return absl::InvalidArgumentError("the array has no dimensions; allowed: at least one");
  auto bytes = static_cast<std::uint64_t>(element_bytes(array.type));
  for (const std::int64_t size : array.dims) {
    if (size == 0 || bytes > array.data.size() / static_cast<std::uint64_t>(size)) {
      return absl::InvalidArgumentError(str_cat("dimension ", size,
                                                ": the shape has no elements, or more than the ",
                                                array.data.size(), " bytes after the header"));
    }
    bytes *= static_cast<std::uint64_t>(size);
  }
  if (bytes != array.data.size()) {
    return absl::InvalidArgumentError(
        str_cat("the shape and type say ", bytes, " bytes, but ", array.data.size(), " follow the header"));
  }
  return array;
}

}  // namespace paceline::data
