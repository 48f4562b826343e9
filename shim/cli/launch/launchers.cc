#include "cli/launch/launchers.h"

#include <algorithm>

namespace ration::cli {

namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kOfLogin = " --command --shell --group --supp-group --whitelist-environment --user ";

constexpr std::string_view kOfContainers =
    " run exec create start restart compose container/run container/exec container/create container/start "
    "container/restart service/create service/update stack/deploy stack/up pod/start pod/restart play/kube kube/play ";

constexpr Launcher kLaunchers[] = {
    {"nice", Passing::kAll, "n", " --adjustment "},
    {"ionice", Passing::kAll, "cn", " --class --classdata "},
    {"nohup", Passing::kAll, "", ""},
    {"setsid", Passing::kAll, "", ""},
    {"stdbuf", Passing::kAll, "ioe", " --input --output --error "},
    {"taskset", Passing::kAll, "", "", 1},
    {"timeout", Passing::kAll, "ks", " --kill-after --signal ", 1},
    {"numactl", Passing::kAll, "iNpPmCSfLO",
     " --interleave --cpunodebind --preferred --preferred-many --membind --physcpubind "},
    {"time", Passing::kAll, "fo", " --format --output "},
    {"strace", Passing::kAll, "eoOPsSuEIabX", " --trace --output --string-limit --user --env --columns "},
    {"ltrace", Passing::kAll, "eosnlauDxAF", " --output --library --user --align --indent "},
    {"xargs", Passing::kAll, "adEILnPs",
     " --arg-file --delimiter --max-args --max-procs --max-lines --max-chars --process-slot-var "},
    {"unshare", Passing::kAll, "wSG", " --wd --setuid --setgid --propagation --setgroups --map-user --map-group "},
    {"chrt", Passing::kAll, "TPD", " --sched-runtime --sched-period --sched-deadline ", 1},
    {"flock", Passing::kAll, "wE", " --wait --timeout --conflict-exit-code ", 1},
    {"prlimit", Passing::kAll, "", ""},
    {"choom", Passing::kAll, "np", " --adjust --pid "},
    {"unbuffer", Passing::kAll, "", ""},
    {"busybox", Passing::kAll, "", ""},
    {"setarch", Passing::kArch, "", ""},
    {"linux32", Passing::kAll, "", ""},
    {"linux64", Passing::kAll, "", ""},
    {"i386", Passing::kAll, "", ""},
    {"x86_64", Passing::kAll, "", ""},
    {"uname26", Passing::kAll, "", ""},
    {"find", Passing::kFind, "", ""},
    {"script", Passing::kLine, "cIOBTmoE",
     " --command --log-in --log-out --log-io --log-timing --logging-format --output-limit --echo "},
    {"watch", Passing::kJoined, "nq", " --interval --equexit "},
    {"make", Passing::kMake, "CfIoW", " --directory --file --makefile --include-dir --old-file --new-file ", 0, "", "",
     "nqv"},
    {"gmake", Passing::kMake, "CfIoW", " --directory --file --makefile --include-dir --old-file --new-file ", 0, "", "",
     "nqv"},
    {"env", Passing::kEnv, "uCS", " --unset --chdir --split-string "},
    {"sudo", Passing::kElevated, "ugprtCDhRTU",
     " --user --group --prompt --role --type --close-from --chdir --host --chroot --command-timeout --other-user ", 0,
     "", "", "lvKV"},
    {"doas", Passing::kElevated, "uC", ""},
    {"pkexec", Passing::kElevated, "", " --user "},
    {"su", Passing::kLogin, "csgGw", kOfLogin},
    {"runuser", Passing::kLogin, "csgGwu", kOfLogin},
    {"setpriv", Passing::kReset, "",
     " --reuid --regid --ruid --euid --rgid --egid --groups --inh-caps --ambient-caps --bounding-set --securebits "
     "--pdeathsig --selinux-label --apparmor-profile "},
    {"bwrap", Passing::kCleared, "", ""},
    {"systemd-run", Passing::kService, "HMupE",
     " --host --machine --unit --property --description --slice --service-type --uid --gid --nice "
     "--working-directory --setenv --on-active --on-boot --on-startup --on-calendar "},
    {"ssh", Passing::kFar, "BbcDEeFIiJLlmOoPpQRSWw", "", 0, "", "", "VGQ"},
    {"mosh", Passing::kFar, "", ""},
    {"rsh", Passing::kFar, "l", ""},
    {"pdsh", Passing::kFar, "", ""},
    {"machinectl", Passing::kFar, "HMnopsE", "", 0, " shell login start reboot enable "},
    {"sbatch", Passing::kFar, "", "", 0, "", "", "V"},
    {"srun", Passing::kFar, "", "", 0, "", "", "V"},
    {"qsub", Passing::kFar, "", ""},
    {"bsub", Passing::kFar, "", ""},
    {"qrsh", Passing::kFar, "", ""},
    {"msub", Passing::kFar, "", ""},
    {"oarsub", Passing::kFar, "", ""},
    {"condor_submit", Passing::kFar, "", ""},
    {"flux", Passing::kFar, "", "", 0, " run submit batch bulksubmit alloc "},
    {"ray", Passing::kFar, "", "", 0, " job submit exec "},
    {"at", Passing::kServer, "fqt", "", 0, "", "", "lrdcV"},
    {"batch", Passing::kServer, "", ""},
    {"crontab", Passing::kServer, "u", "", 0, "", "", "lrV"},
    {"systemctl", Passing::kServer, "HMpnost",
     " --host --machine --type --state --property --lines --output --signal --job-mode --root ", 0,
     " start restart try-restart reload-or-restart enable reenable isolate "},
    {"service", Passing::kServer, "", "", 0, " */start */restart */reload */force-reload "},
    {"supervisorctl", Passing::kServer, "csupr", " --configuration --serverurl --username --password --history-file ",
     0, " start restart "},
    {"pm2", Passing::kServer, "", "", 0, " start restart reload "},
    {"zellij", Passing::kServer, "clns", " --config --config-dir --data-dir --layout --max-panes --session ", 0,
     " run r action ac edit e "},
    {"emacsclient", Passing::kServer, "", ""},
    {"flatpak-spawn", Passing::kServer, "", ""},
    {"tmux", Passing::kTmux, "", ""},
    {"byobu", Passing::kTmux, "", ""},
    {"screen", Passing::kScreen, "cehpsStTO", "", 0, "", "dDrRx"},
    {"kubectl", Passing::kContained, "nsv",
     " --namespace --context --kubeconfig --cluster --user --server --token --as --cache-dir --request-timeout ", 0,
     " run exec create apply replace patch edit set scale autoscale expose rollout debug attach "},
    {"docker", Passing::kContained, "cHl", " --config --context --host --log-level --tlscacert --tlscert --tlskey ", 0,
     kOfContainers},
    {"podman", Passing::kContained, "c",
     " --connection --url --identity --log-level --root --runroot --runtime --runtime-flag --storage-driver "
     "--storage-opt --tmpdir --cgroup-manager --conmon --events-backend --module --network-config-dir --hooks-dir "
     "--imagestore --volumepath --out --ssh ",
     0, kOfContainers},
    {"nerdctl", Passing::kContained, "aHn",
     " --address --host --namespace --snapshotter --storage-driver --cni-path --cni-netconfpath --data-root "
     "--cgroup-manager --hosts-dir ",
     0, kOfContainers},
    {"docker-compose", Passing::kContained, "fp",
     " --file --project-name --profile --env-file --project-directory --ansi --progress --parallel ", 0,
     " up run exec start restart create scale watch "},
    {"ctr", Passing::kContained, "", ""},
    {"crictl", Passing::kContained, "", ""},
    {"lxc", Passing::kContained, "", " --project ", 0, " exec launch init start restart shell "},
    {"lxc-attach", Passing::kContained, "", ""},
    {"incus", Passing::kContained, "", "", 0, " exec launch start shell "},
    {"buildah", Passing::kContained, "", "", 0, " run "},
    {"podman-compose", Passing::kContained, "", ""},
    {"distrobox", Passing::kContained, "", "", 0, " enter create "},
    {"distrobox-enter", Passing::kContained, "", ""},
    {"toolbox", Passing::kContained, "", "", 0, " run enter "},
    {"vagrant", Passing::kContained, "", "", 0, " ssh up "},
    {"multipass", Passing::kContained, "", "", 0, " exec shell launch "},
    {"apptainer", Passing::kContained, "", ""},
    {"singularity", Passing::kContained, "", ""},
    {"flatpak", Passing::kContained, "", "", 0, " run enter build "},
    {"snap", Passing::kContained, "", "", 0, " run start restart "},
    {"chroot", Passing::kOtherRoot, "", " --userspec --groups ", 1},
    {"nsenter", Passing::kOtherRoot, "tSG", " --target --setuid --setgid "},
    {"sh", Passing::kShell, "oO", ""},
    {"bash", Passing::kShell, "oO", " --rcfile --init-file "},
    {"dash", Passing::kShell, "o", ""},
    {"ash", Passing::kShell, "o", ""},
    {"ksh", Passing::kShell, "o", ""},
    {"zsh", Passing::kShell, "o", ""},
    {"fish", Passing::kShell, "", ""},
    {"csh", Passing::kShell, "", ""},
    {"tcsh", Passing::kShell, "", ""},
    {"pyenv", Passing::kChosen, "", "", 0, " exec "},
    {"rbenv", Passing::kChosen, "", "", 0, " exec "},
    {"asdf", Passing::kChosen, "", "", 0, " exec "},
    {"ration", Passing::kRation, "", ""},
};

// The dynamic linker itself, which starts the program that its arguments name (ld.so(8)).
constexpr Launcher kLinker = {"ld.so", Passing::kAll, "",
                              " --library-path --inhibit-rpath --preload --audit --argv0 --glibc-hwcaps-prepend "};

// Words of a shell before a command that is then executed in the usual way.
constexpr Launcher kBuiltins[] = {
    {"exec", Passing::kAll, "a", ""}, {"command", Passing::kAll, "", ""}, {"builtin", Passing::kAll, "", ""}};

bool lists(std::string_view listed, std::string_view word) {
  std::string between(1, ' ');
  between += word;
  between += ' ';
  return listed.find(between) != std::string_view::npos;
}

// True if `option`, possibly abbreviated, is one of those listed.
bool begins_one_of(std::string_view listed, std::string_view option) {
  return option.size() > 2 && listed.find(" " + std::string(option)) != std::string_view::npos;
}

// How many words the option at `at` takes, including itself.
std::size_t words_of_option(const Launcher &launcher, const Words &words, std::size_t at) {
  const std::string_view word = words[at];
  if (word.substr(0, 2) == "--") {
    return word.find('=') == std::string_view::npos && begins_one_of(launcher.valued_long, word) ? 2 : 1;
  }
  const std::size_t valued = word.find_first_of(launcher.valued, 1);
  const bool is_followed = at + 1 < words.size() && !words[at + 1].starts_with('-');
  const bool takes = valued == std::string_view::npos
                         ? is_followed && launcher.valued_perhaps.find(word.back()) != std::string_view::npos
                         : valued + 1 == word.size();
  return takes ? 2 : 1;
}

bool is_option_word(const Launcher &launcher, const std::string &word) {
  const bool plus = launcher.passing == Passing::kShell && word.size() > 1 && word[0] == '+';
  return plus || (word.size() > 1 && word[0] == '-');
}

// True if the letter is a short option in the cluster: it must not come after an option that takes a value.
bool has_letter(const Launcher &launcher, std::string_view word, char letter) {
  if (word.size() < 2 || word[0] != '-' || word[1] == '-') {
    return false;
  }
  const std::size_t at = word.find(letter, 1);
  const std::size_t valued = word.find_first_of(launcher.valued, 1);
  return at != std::string_view::npos && at <= valued;
}

// The value of a short option that takes one, from the same word (`-Lname`) or the next.
std::optional<std::string> short_value(const Launcher &launcher, const Words &words, std::size_t at, char letter) {
  const std::string &word = words[at];
  if (!has_letter(launcher, word, letter)) {
    return std::nullopt;
  }
  const bool takes = launcher.valued.find(letter) != std::string_view::npos;
  const std::size_t end = takes ? word.find(letter, 1) + 1 : word.size();
  if (end < word.size()) {
    return word.substr(end);
  }
  return word.back() == letter && at + 1 < words.size() ? std::optional(words[at + 1]) : std::nullopt;
}

std::optional<std::string> value_at(const Launcher &launcher, const Words &words, std::size_t at,
                                    std::string_view short_name, std::string_view long_name) {
  if (!is_long_option(words[at], long_name)) {
    return short_value(launcher, words, at, short_name[1]);
  }
  const std::size_t equals = words[at].find('=');
  if (equals != std::string::npos) {
    return words[at].substr(equals + 1);
  }
  return at + 1 < words.size() ? std::optional(words[at + 1]) : std::nullopt;
}

}  // namespace

bool is_long_option(std::string_view word, std::string_view option) {
  const std::string_view name = word.substr(0, word.find('='));
  return name.size() > 2 && name.starts_with("--") && option.starts_with(name);
}

const Launcher *launcher_of(std::string_view name) {
  if (name.substr(0, 8) == "ld-linux" || name.substr(0, 4) == "ld64") {
    return &kLinker;
  }
  const auto *found = std::find_if(std::begin(kLaunchers), std::end(kLaunchers),
                                   [&](const Launcher &each) { return each.name == name; });
  return found == std::end(kLaunchers) ? nullptr : found;
}

const Launcher *builtin_of(std::string_view name) {
  const auto *found =
      std::find_if(std::begin(kBuiltins), std::end(kBuiltins), [&](const Launcher &each) { return each.name == name; });
  return found == std::end(kBuiltins) ? nullptr : found;
}

bool starts_command(const Launcher &launcher, const Words &words) {
  if (launcher.passing == Passing::kRation) {
    return words.size() > 1 && words[1] == "run";
  }
  if (has_option(launcher, words, "--help") || has_option(launcher, words, "--version") ||
      std::any_of(launcher.asking.begin(), launcher.asking.end(),
                  [&](char letter) { return has_option(launcher, words, std::string("-") + letter); })) {
    return false;
  }
  if (launcher.verbs.empty()) {
    return true;
  }
  const auto verb = words.begin() + static_cast<std::ptrdiff_t>(end_of_options(launcher, words));
  if (verb == words.end()) {
    return false;
  }
  const auto next = std::find_if(verb + 1, words.end(), [](const std::string &word) { return !word.starts_with('-'); });
  return lists(launcher.verbs, *verb) ||
         (next != words.end() && (lists(launcher.verbs, *verb + "/" + *next) || lists(launcher.verbs, "*/" + *next)));
}

std::size_t end_of_options(const Launcher &launcher, const Words &words) {
  std::size_t at = 1;
  while (at < words.size() && is_option_word(launcher, words[at])) {
    if (words[at] == "--") {
      return at + 1;
    }
    at += words_of_option(launcher, words, at);
  }
  return std::min(at, words.size());
}

bool has_option(const Launcher &launcher, const Words &words, std::string_view option) {
  const std::size_t end = end_of_options(launcher, words);
  for (std::size_t at = 1; at < end; at += words_of_option(launcher, words, at)) {
    if (is_long_option(words[at], option) || (option.size() == 2 && has_letter(launcher, words[at], option[1]))) {
      return true;
    }
  }
  return false;
}

Words options_first(const Launcher &launcher, const Words &words) {
  Words options = {words.front()};
  Words others;
  for (std::size_t at = 1; at < words.size();) {
    Words &into = is_option_word(launcher, words[at]) ? options : others;
    const std::size_t end = std::min(at + (&into == &options ? words_of_option(launcher, words, at) : 1), words.size());
    into.insert(into.end(), words.begin() + static_cast<std::ptrdiff_t>(at),
                words.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

Words option_values(const Launcher &launcher, const Words &words, std::string_view short_name,
                    std::string_view long_name) {
  Words values;
  const std::size_t end = end_of_options(launcher, words);
  for (std::size_t at = 1; at < end; at += words_of_option(launcher, words, at)) {
    if (auto value = value_at(launcher, words, at, short_name, long_name)) {
      values.push_back(std::move(*value));
    }
  }
  return values;
}

std::optional<std::string> option_value(const Launcher &launcher, const Words &words, std::string_view short_name,
                                        std::string_view long_name) {
  for (std::size_t at = 1; at < words.size(); ++at) {
    if (auto value = value_at(launcher, words, at, short_name, long_name)) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace ration::cli
