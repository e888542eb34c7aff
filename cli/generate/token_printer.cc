#include "cli/generate/token_printer.h"

#include "absl/strings/str_cat.h"
#include "base/sanitize.h"

namespace paceline::cli {

namespace {

// Whether more bytes can make a character of these, which are at least one.
bool is_begun(const std::string& bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return bytes.size() < size &&
         (bytes.size() == 1 || (static_cast<unsigned char>(bytes.back()) & 0xc0) == 0x80);
}

}  // namespace

bool TokenPrinter::print(std::span<const std::int32_t> tokens) {
  std::string piece;
  for (const std::int32_t token : tokens) {
    if (writing_ == Writing::kBytes) {
      add_byte(static_cast<char>(token), piece);
    } else {
      absl::StrAppend(&piece, in_line_ ? "," : "", token);
      in_line_ = true;
    }
  }
  out_ << piece << std::flush;
  return out_.good();
}

void TokenPrinter::add_byte(char byte, std::string& piece) {
  in_line_ = byte != '\n';
  if (!terminal_) {
    piece += byte;
    return;
  }
  begun_ += byte;
  if (is_begun(begun_)) return;
  piece += sanitize(begun_);
  begun_.clear();
}

bool TokenPrinter::end() {
  out_ << sanitize(begun_) << (in_line_ ? "\n" : "") << std::flush;
  begun_.clear();
  in_line_ = false;
  return out_.good();
}

}  // namespace paceline::cli
