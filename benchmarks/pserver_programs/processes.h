#pragma once

// The processes of a measurement: each tells the others one text of at most kTextBytes when it begins (where
// it is reached), and works. Children die with their parent, and where they wait for one that is gone.

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace bench {

inline constexpr std::size_t kTextBytes = 512;

// A process's way to the others.
class Meeting {
 public:
  Meeting(int socket, int processes) : socket_(socket), processes_(processes) {}
  // Everybody's text, by process. Returns when all have called it as often.
  std::vector<std::string> exchange(const std::string& mine);
  // Returns when all have called it as often.
  void barrier();

 private:
  int socket_;
  int processes_;
};

// body(index, meeting) in as many processes; 0 where all of them returned.
int run(int processes, const std::function<void(int, Meeting&)>& body);

// One line of nanoseconds on the standard output.
void print(const std::vector<long long>& nanoseconds);
// The same behind "steps", and a line of "server" and what each of the servers told.
void print(const std::vector<long long>& nanoseconds, std::span<const std::string> told);
long long now_ns();

}  // namespace bench
