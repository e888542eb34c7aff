#include "controller/dashboard/session_gate.h"

#include <optional>
#include <utility>

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

class SessionGate::SessionSight final : public Sight {
 public:
  SessionSight(SessionGate& gate, std::string cookie, std::string csrf, const Rights& rights)
      : gate_(gate), cookie_(std::move(cookie)), csrf_(std::move(csrf)), rights_(rights) {}

  Seen look(TimePoint now) override {
    return {.over = !gate_.sessions_.lock()->use(cookie_, csrf_, now), .rights = rights_};
  }

 private:
  SessionGate& gate_;
  const std::string cookie_, csrf_;
  const Rights rights_;
};

SessionGate::SessionGate(std::string user, std::string cookie, AskRights rights, const Clock& clock)
    : user_(std::move(user)), cookie_(std::move(cookie)), ask_rights_(std::move(rights)), clock_(clock) {
  if (ask_rights_ != nullptr) workers_ = std::make_unique<Workers>(2);
}

std::string SessionGate::new_token() {
  std::string token = secret();
  sessions_.lock()->add_token(token);
  return token;
}

void SessionGate::admit(const web::HttpRequest& request, const Need& need, Then then) {
  const std::string& csrf = csrf_word(request, need.of_stream);
  std::string cookie;
  for (const std::string_view each : cookies_named(request.header("cookie"), cookie_)) {
    if (!sessions_.lock()->use(each, csrf, clock_.now())) continue;
    cookie = each;
    break;
  }
  if (cookie.empty()) {
    return then({.refusal = Refusal{401, "Unauthenticated",
                                    "there is no session with this cookie and this X-Paceline-CSRF",
                                    "open the address that `paceline dashboard` prints"}});
  }
  const auto admit = [this, then = std::move(then), cookie, csrf](const Rights& rights) {
    then({.viewer = {.user = user_}, .sight = std::make_shared<SessionSight>(*this, cookie, csrf, rights)});
  };
  if (!need.rights || ask_rights_ == nullptr) return admit({});
  const std::string job = key_of(need.ns, need.name);
  std::optional<Rights> known;
  {
    auto all = known_.lock();
    if (const Known* const found = all->find(job); found != nullptr && found->until > clock_.now())
      known = found->rights;
  }
  if (known) return admit(*known);
  const bool taken =
      workers_->post([this, admit, job, ns = need.ns, name = need.name](const std::stop_token&) {
        const Rights rights = ask_rights_(ns, name);
        known_.lock()->put(job, {rights, clock_.now() + AccessCache::kKept});
        admit(rights);
      });
  if (!taken) admit({});  // whoever may not is refused when he acts
}

void SessionGate::open(const web::HttpRequest&, const std::string& token, std::function<void(Opened)> then) {
  std::optional<Sessions::Session> opened;
  {
    auto sessions = sessions_.lock();
    const auto* session = sessions->open(token, {secret(), secret()}, clock_.now());
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
