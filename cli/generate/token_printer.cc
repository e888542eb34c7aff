#include "cli/generate/token_printer.h"

#include "base/visible.h"

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

bool TokenPrinter::print(std::int32_t token) {
  if (writing_ == Writing::kBytes) {
    print_byte(static_cast<char>(token));
  } else {
    out_ << (in_line_ ? "," : "") << token;
    in_line_ = true;
  }
  out_.flush();
  return out_.good();
}

void TokenPrinter::print_byte(char byte) {
  in_line_ = byte != '\n';
  if (!terminal_) {
    out_.put(byte);
    return;
  }
  begun_ += byte;
  if (is_begun(begun_)) return;
  out_ << visible(begun_);
  begun_.clear();
}

bool TokenPrinter::end() {
  out_ << visible(begun_) << (in_line_ ? "\n" : "") << std::flush;
  begun_.clear();
  in_line_ = false;
  return out_.good();
}

}  // namespace paceline::cli
