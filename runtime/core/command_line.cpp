//===- command_line.cpp - What is wrong with a command line ---------------===//

#include "command_line.h"

#include "genrec_rt/error.h"
#include "text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <map>

namespace genrec::rt {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// 3 as "3", 0.5 as "0.5".
std::string shortNumber(double number) { return formatted("%.10g", number); }

CLI::Validator checked(const std::string &rule, bool (*fits)(double, double, double), double low,
                       double high) {
  return {[=](std::string &given) {
            double number = 0;
            if (!CLI::detail::lexical_cast(given, number))
              return "must be a number, got '" + given + "'";
            return fits(number, low, high) ? std::string() : "must be " + rule + ", got " + given;
          },
          ""};
}

/// Makes decimal digits of `given` those that CLI11 reads, which takes 010 for eight and
/// the largest number for a larger one. Returns what is wrong, or "".
template <class Number> std::string takeWholeNumber(std::string &given) {
  std::string_view digits = given;
  if (digits.starts_with('+'))
    digits.remove_prefix(1);
  Number number = 0;
  const char *last = digits.data() + digits.size();
  auto [end, error] = std::from_chars(digits.data(), last, number);
  if (end != last || error == std::errc::invalid_argument)
    return std::string("must be a whole number") +
           (std::is_signed_v<Number> ? "" : " of at least 0") + ", got '" + given + "'";
  if (error != std::errc())
    return "must be a whole number of at most " +
           std::to_string(std::numeric_limits<Number>::max()) + ", got " + given;
  given = std::to_string(number);
  return "";
}

void checkValue(CLI::Option &option) {
  const std::string type = option.get_type_name();
  option.transform(CLI::Validator(
      [type](std::string &given) {
        if (given.empty())
          return std::string("has an empty value");
        if (type == "INT")
          return takeWholeNumber<int64_t>(given);
        if (type == "UINT")
          return takeWholeNumber<uint64_t>(given);
        return std::string();
      },
      ""));
}

/// The command that was asked for; the program itself where there is none.
const CLI::App &chosenCommand(const CLI::App &app) {
  std::vector<CLI::App *> commands = const_cast<CLI::App &>(app).get_subcommands();
  return commands.empty() ? app : *commands.front();
}

std::vector<std::string> flagNames(const CLI::App &command) {
  std::vector<std::string> names;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

std::string withSuggestion(const std::string &text, const std::string &name,
                           const std::vector<std::string> &candidates) {
  std::string suggested = suggestion(name, candidates);
  return suggested.empty() ? text : text + "; " + suggested;
}

/// The flag that has another name in other libraries; "" for any other.
std::string renamedFlag(const std::string &name) {
  static const std::map<std::string, std::string> names = {
      {"--batch-size", "--batch"},    {"--bs", "--batch"},
      {"--learning-rate", "--lr"},    {"--num-epochs", "--epochs"},
      {"--output", "--out"},          {"--early-stopping", "--patience"},
      {"--num-workers", "--threads"}, {"--random-state", "--seed"},
      {"--ckpt", "--checkpoint"},     {"--grad-clip", "--clip-norm"}};
  auto found = names.find(name);
  return found == names.end() ? "" : found->second;
}

/// Arguments that no command takes.
std::string describeExtras(const CLI::App &app) {
  std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  for (const std::string &extra : extras)
    if (extra.size() > 1 && extra[0] == '-') {
      std::string name = extra.substr(0, extra.find('='));
      std::vector<std::string> flags = flagNames(chosenCommand(app));
      std::string renamed = renamedFlag(name);
      bool isKnown = std::find(flags.begin(), flags.end(), renamed) != flags.end();
      return withSuggestion("there is no flag '" + name + "'", isKnown ? renamed : name, flags);
    }
  return extras.empty() ? "" : "an argument was not expected: '" + extras.back() + "'";
}

std::string describeMissingCommand(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(command->get_name());
  std::vector<std::string> extras = app.remaining();
  std::string list = "one of " + listNames(names);
  if (extras.empty())
    return "a command is needed: " + list;
  std::string text = "there is no command '" + extras.front() + "'";
  std::string suggested = suggestion(extras.front(), names);
  for (const std::string &name : names)
    if (suggested.empty() && extras.front().size() > 2 && name.starts_with(extras.front()))
      suggested = "did you mean '" + name + "'?";
  return text + (suggested.empty() ? ": give " + list : "; " + suggested);
}

std::string describe(const CLI::App &app, const CLI::ParseError &error) {
  constexpr std::string_view kNotConverted = "Could not convert: ";
  std::string text = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
    if (std::string extras = describeExtras(app); !extras.empty())
      return extras;
  if (text == "A subcommand is required")
    return describeMissingCommand(app);
  // A required flag may have been given under another name.
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError))
    if (std::string extras = describeExtras(app); !extras.empty())
      return text + "; " + extras;
  if (text.starts_with(kNotConverted)) {
    text = text.substr(kNotConverted.size());
    size_t equals = text.find(" = ");
    if (equals != std::string::npos)
      return text.substr(0, equals) + ": cannot be '" + text.substr(equals + 3) + "'";
  }
  return text;
}

} // namespace

CLI::Validator aboveZero() {
  return checked("above 0", [](double x, double, double) { return x > 0 && x < kInfinity; }, 0, 0);
}

CLI::Validator zeroOrMore() {
  return checked(
      "at least 0", [](double x, double, double) { return x >= 0 && x < kInfinity; }, 0, 0);
}

CLI::Validator between(double lowest, double highest) {
  return checked(
      shortNumber(lowest) + " to " + shortNumber(highest),
      [](double x, double low, double high) { return x >= low && x <= high; }, lowest, highest);
}

void checkValues(CLI::App &app) {
  for (CLI::App *command : app.get_subcommands([](CLI::App *) { return true; }))
    for (CLI::Option *option : command->get_options())
      if (option->get_items_expected_max() > 0)
        checkValue(*option);
}

int parseErrorStatus(const CLI::ParseError &error) { return error.get_exit_code() == 0 ? 0 : 2; }

int reportParseError(const std::string &program, const CLI::App &app,
                     const CLI::ParseError &error) {
  if (error.get_exit_code() == 0)
    return app.exit(error);
  const CLI::App &command = chosenCommand(app);
  std::string name = &command == &app ? "" : command.get_name() + " ";
  std::fprintf(stderr, "%s: error: %s\n  help: %s--help lists what there is\n", program.c_str(),
               describe(app, error).c_str(), name.c_str());
  return 2;
}

void requirePrinted() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw Error("cannot write the results to the standard output",
                "free some space, or write to another place");
}

} // namespace genrec::rt
