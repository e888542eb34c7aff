#pragma once

// The sessions of those who may use the dashboard of this machine. A token opens it once: it becomes a
// session, which a browser proves by two secrets. The cookie can't be read by scripts, but browsers send it
// to the servers of all ports. The word (against forged requests, CSRF) is known to the page of our port
// alone. Secrets are given by the caller; they are compared in a time that does not depend on them. Bounds:
// kTokens tokens that wait, kSessions sessions (the one that was not used for the longest goes), each until
// it was not used for kUnused. Pure; one thread at a time; `now` may be the zero of its clock: it renews
// nothing.

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace paceline::dashboard {

class Sessions {
 public:
  static constexpr std::size_t kTokens = 16, kSessions = 64;
  static constexpr Duration kUnused = std::chrono::hours(12);

  struct Session {
    std::string cookie, csrf;
  };

  void add_token(std::string token);
  // The token's session, whose secrets these are. Nothing: it is wrong, or was used.
  const Session* open(std::string_view token, Session secrets, TimePoint now);
  // Whether there is a session of both; it counts as used then.
  bool use(std::string_view cookie, std::string_view csrf, TimePoint now);

 private:
  std::list<std::string> tokens_;
  struct Kept {
    Session session;
    TimePoint used{};
  };
  std::list<Kept> sessions_;  // the one that was used last is the first
};

// Whether two secrets are the same.
bool same_secret(std::string_view a, std::string_view b);

// The values of a cookie in a Cookie header, kMostCookies at most: another page of the host may have set one
// of that name, too, which can come first.
inline constexpr std::size_t kMostCookies = 64;
std::vector<std::string_view> cookies_named(std::string_view header, std::string_view name);

}  // namespace paceline::dashboard
