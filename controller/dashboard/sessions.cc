#include "controller/dashboard/sessions.h"

#include <utility>

namespace paceline::dashboard {

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    differ |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return differ == 0;
}

std::vector<std::string_view> cookies_named(std::string_view header, std::string_view name) {
  std::vector<std::string_view> values;
  while (!header.empty() && values.size() < kMostCookies) {
    const std::size_t end = header.find_first_of(";,");
    std::string_view pair = header.substr(0, end);
    header.remove_prefix(end == std::string_view::npos ? header.size() : end + 1);
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name)
      values.push_back(pair.substr(equals + 1));
  }
  return values;
}

void Sessions::add_token(std::string token) {
  tokens_.push_front(std::move(token));
  if (tokens_.size() > kTokens) tokens_.pop_back();
}

const Sessions::Session* Sessions::open(std::string_view token, Session secrets, TimePoint now) {
  for (auto each = tokens_.begin(); each != tokens_.end(); ++each) {
    if (!same_secret(*each, token)) continue;
    tokens_.erase(each);
    sessions_.push_front({std::move(secrets), now});
    if (sessions_.size() > kSessions) sessions_.pop_back();
    return &sessions_.front().session;
  }
  return nullptr;
}

bool Sessions::use(std::string_view cookie, std::string_view csrf, TimePoint now) {
  while (!sessions_.empty() && now - sessions_.back().used >= kUnused) sessions_.pop_back();
  for (auto each = sessions_.begin(); each != sessions_.end(); ++each) {
    if (!same_secret(each->session.cookie, cookie) || !same_secret(each->session.csrf, csrf)) continue;
    if (now < each->used) return true;
    each->used = now;
    sessions_.splice(sessions_.begin(), sessions_, each);
    return true;
  }
  return false;
}

}  // namespace paceline::dashboard
