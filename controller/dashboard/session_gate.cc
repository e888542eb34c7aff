#include "controller/dashboard/session_gate.h"

#include "base/hex.h"
#include "base/random.h"
#include "base/text.h"

namespace paceline::dashboard {

namespace {

constexpr std::size_t kSecretBytes = 32;

std::string secret() {
  return hex(random_bytes(kSecretBytes));
}

}  // namespace

std::string SessionGate::new_token() {
  std::string token = secret();
  sessions_.lock()->add_token(token);
  return token;
}

void SessionGate::admit(const web::HttpRequest& request, const Need& need, Then then) {
  const bool known = sessions_.lock()->use(cookie_named(request.header("cookie"), cookie_),
                                           csrf_word(request, need.of_stream));
  if (known) return then({.viewer = {.user = user_}});
  then({.refusal =
            Refusal{401, "Unauthenticated", "there is no session with this cookie and this X-Paceline-CSRF",
                    "open the address that `paceline dashboard` prints"}});
}

void SessionGate::open(const std::string& token, std::function<void(Opened)> then) {
  std::optional<Sessions::Session> opened;
  {
    auto sessions = sessions_.lock();
    const auto* session = sessions->open(token, {secret(), secret()});
    if (session != nullptr) opened = *session;
  }
  if (!opened) {
    return then(
        {.admission = {.refusal = Refusal{401, "Unauthenticated", "the token is wrong, or was used before",
                                          "start `paceline dashboard` again, which prints a new address"}}});
  }
  then({.admission = {.viewer = {.user = user_}},
        .told = {{"csrf", opened->csrf}},
        .cookie = str_cat(cookie_, "=", opened->cookie, "; HttpOnly; SameSite=Strict; Path=/")});
}

}  // namespace paceline::dashboard
