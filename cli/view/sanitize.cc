#include "cli/view/sanitize.h"

#include <algorithm>
#include <utility>

#include "base/sanitize.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

std::string sanitize_styled(std::string_view text) {
  std::string out;
  bool open = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\x1b\n"), text.size());
    out += sanitize(text.substr(0, end));
    text.remove_prefix(end);
    if (text.empty()) break;
    const std::size_t style = style_length(text);
    if (style > 0) {
      open = text.substr(0, style) != kStyleEnd;
      out.append(text.substr(0, style));
    } else {
      if (text[0] == '\n' && std::exchange(open, false)) out += kStyleEnd;
      out += sanitize(text.substr(0, 1));
    }
    text.remove_prefix(std::max<std::size_t>(style, 1));
  }
  if (open) out += kStyleEnd;
  return out;
}

SanitizingBuffer::SanitizingBuffer(std::ostream& stream, Rule rule)
    : stream_(stream), rule_(rule), inner_(stream.rdbuf()) {
  stream_.rdbuf(this);
}

SanitizingBuffer::~SanitizingBuffer() {
  SanitizingBuffer::sync();
  const std::ios_base::iostate state = stream_.rdstate();
  stream_.rdbuf(inner_);
  stream_.clear(state);
}

void SanitizingBuffer::pass(std::string_view text) {
  if (!put_waiting(waiting_.size()) || !put(text)) stream_.setstate(std::ios_base::badbit);
}

SanitizingBuffer::int_type SanitizingBuffer::overflow(int_type c) {
  if (c == traits_type::eof()) return traits_type::not_eof(c);
  const char byte = traits_type::to_char_type(c);
  return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
}

std::streamsize SanitizingBuffer::xsputn(const char* text, std::streamsize count) {
  waiting_.append(text, static_cast<std::size_t>(count));
  const std::size_t newline = waiting_.rfind('\n');
  return newline == std::string::npos || put_waiting(newline + 1) ? count : 0;
}

int SanitizingBuffer::sync() {
  return put_waiting(waiting_.size()) && inner_->pubsync() == 0 ? 0 : -1;
}

bool SanitizingBuffer::put(std::string_view text) {
  const auto size = static_cast<std::streamsize>(text.size());
  return inner_->sputn(text.data(), size) == size;
}

bool SanitizingBuffer::put_waiting(std::size_t count) {
  const std::string text = rule_(std::string_view(waiting_).substr(0, count));
  waiting_.erase(0, count);
  return put(text);
}

void write_frame(std::ostream& out, std::string_view frame) {
  if (auto* const buffer = dynamic_cast<SanitizingBuffer*>(out.rdbuf())) {
    buffer->pass(frame);
  } else {
    out << frame;
  }
}

}  // namespace paceline::cli
