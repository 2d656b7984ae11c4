package ottla.pipelines;

import java.io.Serializable;
import java.io.UnsupportedEncodingException;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.LinkedHashMap;

import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads the bytes of a JSON object into a row, where nothing about them needs a closer look.
 *
 * The answer is null for all other bytes, which Spark's own parser then reads, and judges: so this
 * class knows no errors, and what it reads must be what Spark reads. It takes an object with fields
 * of the schema alone, each once, in any order, with nothing behind it, in UTF-8. What may be null
 * may be missing. The values have the forms that Spark's parser does not change:
 *
 *   "text"             string
 *   -12                tinyint, smallint, int, bigint: in range, at most 18 digits
 *   -1.5e3             float, double: finite
 *   12.5, "12.5"       decimal: all its digits have room
 *   true               boolean
 *   "2026-01-31"       date, years 1900 to 9998
 *   "2026-01-31T12:00:00.123456Z"   timestamp, with a zone ("Z" or "+01:00")
 *   {...}, [...]       struct, array, map with texts as keys, each once
 *
 * Each task has an object of its own. That of the driver may be called by several threads, where
 * Spark computes rows while it plans.
 */
public final class PlainObject implements UDF1 {
    private static final long serialVersionUID = 1L;
    private static final int TEXT = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5,
        DOUBLE = 6, DECIMAL = 7, BOOLEAN = 8, DATE = 9, TIMESTAMP = 10, STRUCT = 11, ARRAY = 12,
        MAP = 13;
    private static final String[] NAMES = {"string", "tinyint", "smallint", "int", "bigint",
        "float", "double", "decimal", "boolean", "date", "timestamp"};
    private static final int MAX_BYTES = 10000000;
    private static final int MAX_INTEGER_DIGITS = 18;
    private static final int MAX_EXACT_DIGITS = 15;
    private static final int MAX_NUMBER_BYTES = 60;
    private static final double[] POWERS = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
        1e11, 1e12, 1e13, 1e14, 1e15};

    private final Kind schema;
    private transient byte[] text;
    private transient int at;
    private transient Object value;

    public PlainObject(StructType schema) throws UnsupportedEncodingException {
        this.schema = new Kind(schema);
    }

    /** Return the row, null for null and for bytes that Spark is to read. */
    public synchronized Object call(Object given) {
        if (given == null || ((byte[]) given).length > MAX_BYTES) {
            return null;
        }
        this.text = (byte[]) given;
        this.at = 0;
        this.skipSpaces();
        boolean isRead = this.readStruct(this.schema);
        this.skipSpaces();
        Object row = isRead && this.at == this.text.length ? this.value : null;
        this.text = null;
        this.value = null;
        return row;
    }

    /** A type: of a struct the fields, of an array the elements, of a map the values. */
    private static final class Kind implements Serializable {
        private static final long serialVersionUID = 1L;
        final int code;
        final byte[][] names;
        final Kind[] parts;
        final boolean[] nullable;
        final int wholeDigits;
        final int scale;

        Kind(DataType type) throws UnsupportedEncodingException {
            int wholeDigits = 0, scale = 0;
            if (type instanceof StructType) {
                StructField[] fields = ((StructType) type).fields();
                this.code = STRUCT;
                this.names = new byte[fields.length][];
                this.parts = new Kind[fields.length];
                this.nullable = new boolean[fields.length];
                for (int i = 0; i < fields.length; i++) {
                    this.names[i] = fields[i].name().getBytes("UTF-8");
                    this.parts[i] = new Kind(fields[i].dataType());
                    this.nullable[i] = fields[i].nullable();
                }
            } else if (type instanceof ArrayType) {
                ArrayType array = (ArrayType) type;
                this.code = ARRAY;
                this.names = null;
                this.parts = new Kind[] {new Kind(array.elementType())};
                this.nullable = new boolean[] {array.containsNull()};
            } else if (type instanceof MapType) {
                MapType map = (MapType) type;
                this.code = MAP;
                this.names = null;
                this.parts = new Kind[] {new Kind(map.valueType())};
                this.nullable = new boolean[] {map.valueContainsNull()};
            } else {
                if (type instanceof DecimalType) {
                    scale = ((DecimalType) type).scale();
                    wholeDigits = ((DecimalType) type).precision() - scale;
                }
                this.code = type instanceof DecimalType ? DECIMAL : codeOf(type.simpleString());
                this.names = null;
                this.parts = null;
                this.nullable = null;
            }
            this.wholeDigits = wholeDigits;
            this.scale = scale;
        }

        private static int codeOf(String name) {
            for (int i = 0; i < NAMES.length; i++) {
                if (NAMES[i].equals(name)) {
                    return i;
                }
            }
            throw new IllegalArgumentException(name);
        }
    }

    /** Read the value that begins here; false: Spark is to read it. */
    private boolean read(Kind kind, boolean nullable) {
        if (this.at >= this.text.length) {
            return false;
        }
        if (this.text[this.at] == 'n') {
            this.value = null;
            return nullable && this.takesWord("null");
        }
        boolean quoted = this.text[this.at] == '"';
        switch (kind.code) {
            case TEXT:
                return quoted && this.readText();
            case STRUCT:
                return this.readStruct(kind);
            case ARRAY:
                return this.readArray(kind);
            case MAP:
                return this.readMap(kind);
            case BOOLEAN:
                boolean isTrue = this.text[this.at] == 't';
                this.value = Boolean.valueOf(isTrue);
                return this.takesWord(isTrue ? "true" : "false");
            case FLOAT:
            case DOUBLE:
                return this.readFraction(kind.code);
            case DECIMAL:
                return this.readDecimal(quoted, kind.wholeDigits, kind.scale);
            case DATE:
                return quoted && this.readDate();
            case TIMESTAMP:
                return quoted && this.readTimestamp();
            default:
                return this.readInteger(kind.code);
        }
    }

    private boolean readStruct(Kind kind) {
        int fields = kind.names.length;
        Object[] row = new Object[fields];
        boolean[] there = new boolean[fields];
        int next = 0;
        int more = this.opens('{', '}');
        while (more > 0) {
            int field = this.takes('"') ? this.field(kind.names, next) : -1;
            if (field < 0 || there[field]) {
                return false;
            }
            there[field] = true;
            next = field + 1;
            this.at += kind.names[field].length + 1;
            if (!this.takesColon() || !this.read(kind.parts[field], kind.nullable[field])) {
                return false;
            }
            row[field] = this.value;
            more = this.goesOn('}');
        }
        if (more < 0) {
            return false;
        }
        for (int i = 0; i < fields; i++) {
            if (!there[i] && !kind.nullable[i]) {
                return false;
            }
        }
        this.value = RowFactory.create(row);
        return true;
    }

    private boolean readArray(Kind kind) {
        ArrayList found = new ArrayList();
        int more = this.opens('[', ']');
        while (more > 0) {
            if (!this.read(kind.parts[0], kind.nullable[0])) {
                return false;
            }
            found.add(this.value);
            more = this.goesOn(']');
        }
        if (more < 0) {
            return false;
        }
        this.value = found;
        return true;
    }

    private boolean readMap(Kind kind) {
        LinkedHashMap found = new LinkedHashMap();
        int more = this.opens('{', '}');
        while (more > 0) {
            if (this.at >= this.text.length || this.text[this.at] != '"' || !this.readText()) {
                return false;
            }
            Object key = this.value;
            boolean isRead = !found.containsKey(key) && this.takesColon();
            if (!isRead || !this.read(kind.parts[0], kind.nullable[0])) {
                return false;
            }
            found.put(key, this.value);
            more = this.goesOn('}');
        }
        if (more < 0) {
            return false;
        }
        this.value = found;
        return true;
    }

    /** Go to the first of some values: 1, or 0 where there is none, or -1 where they do not begin. */
    private int opens(char begin, char end) {
        if (!this.takes(begin)) {
            return -1;
        }
        this.skipSpaces();
        return this.takes(end) ? 0 : 1;
    }

    /** Go to the next of some values: 1, or 0 where that was the last, or -1 where neither comes. */
    private int goesOn(char end) {
        this.skipSpaces();
        boolean more = this.takes(',');
        if (!more && !this.takes(end)) {
            return -1;
        }
        this.skipSpaces();
        return more ? 1 : 0;
    }

    /** Return the field whose name begins here and ends with the quote, -1 if there is none. */
    private int field(byte[][] names, int next) {
        if (next < names.length && this.isName(names[next])) {
            return next;
        }
        for (int i = 0; i < names.length; i++) {
            if (this.isName(names[i])) {
                return i;
            }
        }
        return -1;
    }

    private boolean isName(byte[] name) {
        byte[] text = this.text;
        int begin = this.at, size = name.length;
        if (begin + size >= text.length || text[begin + size] != '"') {
            return false;
        }
        for (int i = 0; i < size; i++) {
            if (text[begin + i] != name[i]) {
                return false;
            }
        }
        return true;
    }

    private boolean readInteger(int kind) {
        byte[] text = this.text;
        int at = this.at;
        boolean minus = text[at] == '-';
        if (minus) {
            at++;
        }
        int first = at;
        long number = 0;
        while (at < text.length && isDigit(text[at])) {
            number = number * 10 + (text[at++] - '0');
        }
        int digits = at - first;
        // Not -0 either: as a floating-point number it is not 0.
        boolean wrong = digits == 0 || digits > MAX_INTEGER_DIGITS
            || text[first] == '0' && (digits > 1 || minus);
        if (wrong || !this.endsAt(at)) {
            return false;
        }
        this.at = at;
        if (minus) {
            number = -number;
        }
        if (kind == BIGINT) {
            this.value = Long.valueOf(number);
            return true;
        }
        if (kind == INT) {
            this.value = Integer.valueOf((int) number);
            return number == (int) number;
        }
        if (kind == SMALLINT) {
            this.value = Short.valueOf((short) number);
            return number == (short) number;
        }
        this.value = Byte.valueOf((byte) number);
        return number == (byte) number;
    }

    private boolean readFraction(int kind) {
        byte[] text = this.text;
        int begin = this.at, at = begin;
        boolean minus = text[at] == '-';
        if (minus) {
            at++;
        }
        int first = at;
        long number = 0;
        while (at < text.length && isDigit(text[at])) {
            number = number * 10 + (text[at++] - '0');
        }
        int digits = at - first, scale = 0;
        boolean whole = true, exponent = false;
        if (digits == 0 || digits > 1 && text[first] == '0') {
            return false;
        }
        if (at < text.length && text[at] == '.') {
            whole = false;
            int point = ++at;
            while (at < text.length && isDigit(text[at])) {
                number = number * 10 + (text[at++] - '0');
            }
            scale = at - point;
            if (scale == 0) {
                return false;
            }
        }
        if (at < text.length && (text[at] == 'e' || text[at] == 'E')) {
            whole = false;
            exponent = true;
            at++;
            if (at < text.length && (text[at] == '-' || text[at] == '+')) {
                at++;
            }
            int power = at;
            while (at < text.length && isDigit(text[at])) {
                at++;
            }
            if (at == power) {
                return false;
            }
        }
        // An integer -0 is 0 to Spark, and a fraction -0.0 is not.
        if (!this.endsAt(at) || at - begin > MAX_NUMBER_BYTES || whole && minus && number == 0) {
            return false;
        }
        this.at = at;
        if (kind == DOUBLE && !exponent && digits + scale <= MAX_EXACT_DIGITS) {
            // Both are exact, so the quotient is the nearest double, as parseDouble returns it.
            double found = number / POWERS[scale];
            this.value = Double.valueOf(minus ? -found : found);
            return true;
        }
        String written = new String(text, 0, begin, at - begin);
        if (kind == DOUBLE) {
            double found = Double.parseDouble(written);
            this.value = Double.valueOf(found);
            return !Double.isInfinite(found);
        }
        float found = Float.parseFloat(written);
        this.value = Float.valueOf(found);
        return !Float.isInfinite(found);
    }

    private boolean readDecimal(boolean quoted, int wholeDigits, int scale) {
        byte[] text = this.text;
        int at = quoted ? this.at + 1 : this.at;
        int begin = at;
        if (at < text.length && text[at] == '-') {
            at++;
        }
        int first = at;
        while (at < text.length && isDigit(text[at])) {
            at++;
        }
        int digits = at - first, fraction = 0;
        if (digits == 0 || digits > wholeDigits || digits > 1 && text[first] == '0') {
            return false;
        }
        if (at < text.length && text[at] == '.') {
            int point = ++at;
            while (at < text.length && isDigit(text[at])) {
                at++;
            }
            fraction = at - point;
            if (fraction == 0 || fraction > scale) {
                return false;
            }
        }
        int end = at;
        if (quoted) {
            if (at >= text.length || text[at] != '"') {
                return false;
            }
            at++;
        }
        if (!this.endsAt(at)) {
            return false;
        }
        this.at = at;
        this.value = new BigDecimal(new String(text, 0, begin, end - begin));
        return true;
    }

    private boolean readDate() {
        LocalDate day = this.day(this.at + 1);
        this.at += 11;
        this.value = day;
        return day != null && this.takes('"');
    }

    private boolean readTimestamp() {
        byte[] text = this.text;
        int at = this.at + 1;
        LocalDate day = this.day(at);
        at += 10;
        if (day == null || at + 9 >= text.length || text[at] != 'T') {
            return false;
        }
        int hour = this.twoDigits(at + 1), minute = this.twoDigits(at + 4);
        int second = this.twoDigits(at + 7);
        boolean isTime = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0
            && second < 60 && text[at + 3] == ':' && text[at + 6] == ':';
        if (!isTime) {
            return false;
        }
        at += 9;
        int nanos = 0;
        if (text[at] == '.') {
            int first = ++at, unit = 100000000;
            while (at < text.length && isDigit(text[at]) && at - first < 6) {
                nanos += (text[at++] - '0') * unit;
                unit /= 10;
            }
            if (at == first || at >= text.length) {
                return false;
            }
        }
        int offset = 0;
        if (text[at] == 'Z') {
            at++;
        } else if (text[at] == '+' || text[at] == '-') {
            if (at + 5 >= text.length || text[at + 3] != ':') {
                return false;
            }
            int hours = this.twoDigits(at + 1), minutes = this.twoDigits(at + 4);
            if (hours < 0 || hours > 17 || minutes < 0 || minutes > 59) {
                return false;
            }
            offset = (hours * 60 + minutes) * (text[at] == '-' ? -60 : 60);
            at += 6;
        } else {
            return false;
        }
        this.at = at;
        long seconds = day.toEpochDay() * 86400L + hour * 3600 + minute * 60 + second - offset;
        this.value = Instant.ofEpochSecond(seconds, nanos);
        return this.takes('"');
    }

    /** Return the day that is written here as yyyy-mm-dd, null without one. */
    private LocalDate day(int at) {
        byte[] text = this.text;
        if (at + 10 >= text.length || text[at + 4] != '-' || text[at + 7] != '-') {
            return null;
        }
        int century = this.twoDigits(at), rest = this.twoDigits(at + 2);
        int month = this.twoDigits(at + 5), day = this.twoDigits(at + 8);
        if (century < 19 || rest < 0 || month < 1 || month > 12 || day < 1) {
            return null;
        }
        int year = century * 100 + rest;
        LocalDate first = LocalDate.of(year, month, 1);
        return year > 9998 || day > first.lengthOfMonth() ? null : first.withDayOfMonth(day);
    }

    private int twoDigits(int at) {
        byte[] text = this.text;
        if (at + 1 >= text.length || !isDigit(text[at]) || !isDigit(text[at + 1])) {
            return -1;
        }
        return (text[at] - '0') * 10 + (text[at + 1] - '0');
    }

    private boolean readText() {
        byte[] text = this.text;
        int begin = ++this.at, at = begin;
        while (at < text.length) {
            int one = text[at];
            if (one == '"') {
                this.at = at + 1;
                this.value = UTF8String.fromBytes(text, begin, at - begin);
                return true;
            }
            if (one == '\\') {
                return this.readEscaped(begin, at);
            }
            if (one >= 0 && one < ' ') {
                return false;
            }
            int size = one >= 0 ? 1 : this.sizeAt(at);
            if (size == 0) {
                return false;
            }
            at += size;
        }
        return false;
    }

    /** Read a text from its begin on, whose first backslash is at `at`. */
    private boolean readEscaped(int begin, int at) {
        byte[] text = this.text;
        byte[] found = new byte[text.length - begin];
        int size = at - begin;
        System.arraycopy(text, begin, found, 0, size);
        while (at < text.length) {
            int one = text[at];
            if (one == '"') {
                this.at = at + 1;
                this.value = UTF8String.fromBytes(found, 0, size);
                return true;
            }
            if (one >= 0 && one < ' ') {
                return false;
            }
            if (one != '\\') {
                int bytes = one >= 0 ? 1 : this.sizeAt(at);
                if (bytes == 0) {
                    return false;
                }
                for (int i = 0; i < bytes; i++) {
                    found[size++] = text[at++];
                }
                continue;
            }
            if (at + 1 >= text.length) {
                return false;
            }
            int kind = "\"\\/bfnrtu".indexOf(text[at + 1]);
            if (kind < 0) {
                return false;
            }
            if (kind < 8) {
                found[size++] = (byte) "\"\\/\b\f\n\r\t".charAt(kind);
                at += 2;
                continue;
            }
            int code = this.hexAt(at + 2);
            at += 6;
            if (code >= 0xd800 && code < 0xdc00 && at + 1 < text.length && text[at] == '\\'
                    && text[at + 1] == 'u') {
                int low = this.hexAt(at + 2);
                if (low < 0xdc00 || low >= 0xe000) {
                    return false;
                }
                code = 0x10000 + (code - 0xd800) * 1024 + (low - 0xdc00);
                at += 6;
            } else if (code < 0 || code >= 0xd800 && code < 0xe000) {
                return false;
            }
            size = encode(code, found, size);
        }
        return false;
    }

    /** Write a character in UTF-8, which takes no more bytes than its escape; return the new size. */
    private static int encode(int code, byte[] found, int size) {
        if (code < 0x80) {
            found[size++] = (byte) code;
            return size;
        }
        if (code < 0x800) {
            found[size++] = (byte) (0xc0 | code >> 6);
        } else {
            if (code < 0x10000) {
                found[size++] = (byte) (0xe0 | code >> 12);
            } else {
                found[size++] = (byte) (0xf0 | code >> 18);
                found[size++] = (byte) (0x80 | code >> 12 & 0x3f);
            }
            found[size++] = (byte) (0x80 | code >> 6 & 0x3f);
        }
        found[size++] = (byte) (0x80 | code & 0x3f);
        return size;
    }

    private int hexAt(int at) {
        byte[] text = this.text;
        if (at + 4 > text.length) {
            return -1;
        }
        int found = 0;
        for (int i = at; i < at + 4; i++) {
            int digit = text[i] < 0 ? -1 : Character.digit((char) text[i], 16);
            if (digit < 0) {
                return -1;
            }
            found = found * 16 + digit;
        }
        return found;
    }

    /** Return the size of the character of several bytes that begins here, 0 if it is not UTF-8. */
    private int sizeAt(int at) {
        byte[] text = this.text;
        int first = text[at] & 0xff;
        int size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
        if (size == 0 || at + size > text.length) {
            return 0;
        }
        for (int i = at + 1; i < at + size; i++) {
            if ((text[i] & 0xc0) != 0x80) {
                return 0;
            }
        }
        int second = text[at + 1] & 0xff;
        // Longer than needed, half of a surrogate pair, or beyond the last character.
        boolean wrong = first == 0xe0 && second < 0xa0 || first == 0xed && second > 0x9f
            || first == 0xf0 && second < 0x90 || first == 0xf4 && second > 0x8f;
        return wrong ? 0 : size;
    }

    private void skipSpaces() {
        byte[] text = this.text;
        int at = this.at;
        while (at < text.length && isSpace(text[at])) {
            at++;
        }
        this.at = at;
    }

    private boolean takes(char one) {
        if (this.at >= this.text.length || this.text[this.at] != one) {
            return false;
        }
        this.at++;
        return true;
    }

    private boolean takesColon() {
        this.skipSpaces();
        boolean found = this.takes(':');
        this.skipSpaces();
        return found;
    }

    private boolean takesWord(String word) {
        for (int i = 0; i < word.length(); i++) {
            if (!this.takes(word.charAt(i))) {
                return false;
            }
        }
        return this.endsAt(this.at);
    }

    /** Tell whether a number or word ends before this byte. */
    private boolean endsAt(int at) {
        if (at >= this.text.length) {
            return false;
        }
        byte one = this.text[at];
        return one == ',' || one == '}' || one == ']' || isSpace(one);
    }

    private static boolean isDigit(byte one) {
        return one >= '0' && one <= '9';
    }

    private static boolean isSpace(byte one) {
        return one == ' ' || one == '\t' || one == '\n' || one == '\r';
    }
}
