#include "config/files/json_tree.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::config {

namespace {

using Json = nlohmann::json;

constexpr char kNulByte[] = "it is not valid JSON: there is a NUL byte";

// The parser reports its position only in an error, so it reads through an iterator that records its progress.
struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  const char *at;
  const char **reached;

  reference operator*() const { return *at; }
  Cursor &operator++() {
    *reached = ++at;
    return *this;
  }
  friend bool operator==(const Cursor &a, const Cursor &b) { return a.at == b.at; }
};

// Converts increasing offsets to lines and columns, so that all calls together cost one pass over the text.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {}

  JsonPlace of(std::size_t offset) {
    for (; offset_ < offset && offset_ < text_.size(); ++offset_) {
      const auto byte = static_cast<unsigned char>(text_[offset_]);
      if (byte == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((byte & 0xC0) != 0x80) {  // not a continuation byte of UTF-8
        ++place_.column;
      }
    }
    return place_;
  }

 private:
  std::string_view text_;
  std::size_t offset_ = 0;
  JsonPlace place_;
};

// The UTF-8 character at `at`.
std::string_view character_at(std::string_view text, std::size_t at) {
  std::size_t end = std::min(at + 1, text.size());
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    ++end;
  }
  return at < end ? text.substr(at, end - at) : std::string_view();
}

bool wants_quotes(std::string_view text, std::size_t at) {
  constexpr std::string_view kBeginsUnit = "%kKmMgGtTiB";
  return at > 0 && at < text.size() && text[at - 1] >= '0' && text[at - 1] <= '9' &&
         kBeginsUnit.find(text[at]) != std::string_view::npos;
}

// Returns nlohmann's message without three parts: the exception id, the position (the caller adds one), and the last
// text read, which may be a secret of the file's owner.
std::string sentence_of(std::string_view what) {
  std::string sentence(what.substr(std::min(what.find("] ") + 2, what.size())));
  if (const std::size_t colon = sentence.find(": "); sentence.find("parse error at ") == 0) {
    sentence.erase(0, colon + 2);
  }
  const std::size_t last = sentence.find("; last read: '");
  if (const std::size_t end = sentence.rfind('\''); last != std::string::npos && end > last) {
    sentence.erase(last, end + 1 - last);
  }
  constexpr std::size_t kLongest = 200;  // a number that is too large is quoted in full
  const bool cut = sentence.size() > kLongest;
  return "it is not valid JSON: " + printable(sentence.substr(0, kLongest)) + (cut ? "..." : "");
}

class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(std::string_view text, const char *const &reached, JsonTree &tree)
      : text_(text), places_(text), reached_(reached), tree_(tree) {}

  bool null() override { return add(JsonNode::Kind::kNull, "null"); }
  bool boolean(bool value) override { return add(JsonNode::Kind::kSwitch, value ? "true" : "false"); }
  bool number_integer(number_integer_t) override { return add(JsonNode::Kind::kNumber, number_read()); }
  bool number_unsigned(number_unsigned_t) override { return add(JsonNode::Kind::kNumber, number_read()); }
  bool number_float(number_float_t, const string_t &) override { return add(JsonNode::Kind::kNumber, number_read()); }
  bool string(string_t &value) override { return add(JsonNode::Kind::kString, value); }
  bool binary(binary_t &) override { return false; }  // never occurs in JSON text
  bool start_object(std::size_t) override { return open(JsonNode::Kind::kObject); }
  bool start_array(std::size_t) override { return open(JsonNode::Kind::kArray); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t &value) override {
    key_ = value;
    // The key has just been read, so it starts at the nearest preceding quotation mark that is not escaped.
    std::size_t at = offset() - 1;
    do {
      at = text_.rfind('"', at - 1);
    } while (at != 0 && text_[at - 1] == '\\');
    key_place_ = places_.of(at);
    return true;
  }

  bool parse_error(std::size_t position, const std::string &, const Json::exception &error) override {
    const std::size_t at = position == 0 ? 0 : std::min(position, text_.size()) - 1;
    tree_.wrong = sentence_of(error.what());
    tree_.place = places_.of(at);
    if (at < text_.size() && text_[at] == '\0') {  // the parser takes it as the end of the text
      tree_.wrong = kNulByte;
    }
    if (wants_quotes(text_, at)) {
      tree_.wrong += " (a size with a unit must be in quotation marks)";
    } else if (at < text_.size() && text_[at] == '\'') {
      tree_.wrong += " (JSON takes double quotation marks)";
    } else if (const std::string_view read = character_at(text_, at); !likely_cause(read).empty()) {
      tree_.wrong += " (" + std::string(read) + ")";
    }
    return false;
  }

 private:
  [[nodiscard]] std::size_t offset() const { return static_cast<std::size_t>(reached_ - text_.data()); }

  // The number as it is in the text: the parser's own copy has the decimal point of the program's locale.
  [[nodiscard]] std::string number_read() const {
    constexpr std::string_view kOfNumbers = "0123456789+-.eE";
    const std::size_t end = text_.find_last_of(kOfNumbers, offset() - 1) + 1;  // one character is read ahead
    const std::size_t before = text_.find_last_not_of(kOfNumbers, end - 1);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    return plain_number(text_.substr(begin, end - begin));
  }

  JsonNode &place_for(JsonNode::Kind kind) {
    JsonNode node;
    node.kind = kind;
    node.key = std::move(key_);
    key_.clear();
    if (open_.empty()) {
      tree_.root = std::move(node);
      return tree_.root;
    }
    JsonNode &parent = *open_.back();
    node.place = parent.kind == JsonNode::Kind::kObject ? key_place_ : places_.of(offset() - 1);
    return parent.children.emplace_back(std::move(node));
  }

  bool is_one_too_many() {
    if (++values_ <= kMostJsonValues) {
      return false;
    }
    tree_.wrong = "it has more than " + std::to_string(kMostJsonValues) +
                  " values, counting those in objects and lists; no settings file has: remove what is not a setting";
    tree_.place = places_.of(offset() - 1);
    return true;
  }

  bool add(JsonNode::Kind kind, std::string text) {
    if (is_one_too_many()) {
      return false;
    }
    place_for(kind).text = std::move(text);
    return true;
  }

  bool open(JsonNode::Kind kind) {
    if (is_one_too_many()) {
      return false;
    }
    if (open_.size() == kDeepestJson) {
      tree_.wrong = "it is nested deeper than " + std::to_string(kDeepestJson) + " levels; no setting is";
      tree_.place = places_.of(offset() - 1);
      return false;
    }
    open_.push_back(&place_for(kind));  // stays valid: the parent gets no further child until this node is closed
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  Places places_;
  const char *const &reached_;
  JsonTree &tree_;
  std::vector<JsonNode *> open_;
  std::size_t values_ = 0;
  std::string key_;
  JsonPlace key_place_;
};

}  // namespace

JsonTree parse_json(std::string_view text) {
  JsonTree tree;
  const char *reached = text.data();
  TreeBuilder builder(text, reached, tree);
  const char *end = text.data() + text.size();
  const bool read = Json::sax_parse(Cursor{text.data(), &reached}, Cursor{end, &reached}, &builder);
  if (!read && tree.wrong.empty()) {
    tree.wrong = "it is not valid JSON";
  }
  if (const std::size_t nul = text.find('\0'); read && nul != std::string_view::npos) {
    tree.wrong = kNulByte;
    tree.place = Places(text).of(nul);
  }
  return tree;
}

}  // namespace ration::config
