#pragma once

// The rule of base/sanitize.h for what goes through std::cerr, and std::cout where that is a terminal: main()
// puts a SanitizingBuffer before each. One thread.

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace paceline::cli {

// sanitize(), but for the styles that styled() writes; one that is open ends with its line. It can't tell who
// wrote a style: what is a stranger's is sanitize(), or sanitize_line(), before it comes here.
std::string sanitize_styled(std::string_view text);

// Passes on what is written, by its rule, by whole lines and whenever it is flushed.
class SanitizingBuffer final : public std::streambuf {
 public:
  // sanitize_styled() or, where nothing is styled, sanitize().
  using Rule = std::string (*)(std::string_view);
  // Between a stream and the buffer that it had, while it lives.
  SanitizingBuffer(std::ostream& stream, Rule rule);
  ~SanitizingBuffer() override;
  SanitizingBuffer(const SanitizingBuffer&) = delete;
  SanitizingBuffer& operator=(const SanitizingBuffer&) = delete;

  // As it is: with escape sequences of ours, around text that is harmless already.
  void pass(std::string_view text);

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  bool put(std::string_view text);
  bool put_waiting(std::size_t count);

  std::ostream& stream_;
  const Rule rule_;
  std::streambuf* const inner_;
  std::string waiting_;  // of a line whose end has not come
};

// A Frame's sequences, through a SanitizingBuffer if the stream has one.
void write_frame(std::ostream& out, std::string_view frame);

}  // namespace paceline::cli
