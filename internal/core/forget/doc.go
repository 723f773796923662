// Package forget finds and removes what is said about a topic in texts.
//
// A [Topic] is a few words, or a phrase in quotation marks. A line is about the topic if
// it contains all of the words; if no line of a text does, neighboring lines that
// contain them together are. The words of languages with spaces must begin where a word
// begins, and may have a common ending: "birthday" also finds "birthdays" and not
// "unbirthday".
//
// [Topic.Cut] removes such lines from a text, and [Topic.CutJSON] from the strings of a
// JSON document, except those that identify something, such as ids and addresses.
package forget
